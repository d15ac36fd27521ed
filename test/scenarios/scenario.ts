/** The whole service but its socket, on a real storage. */
import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import { issueToken, type NewToken } from "../../src/auth/opaque-token.ts";
import type { Storage } from "../../src/domain/storage.ts";
import { createLog } from "../../src/log.ts";
import { type Assembly, assemble } from "../../src/server/assembly.ts";
import { openStorage } from "../../src/storage/open.ts";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

export interface World {
  readonly storage: Storage;
  readonly assembly: Assembly;
  fetch(request: string, init?: RequestInit): Promise<Response>;
  /** The same data as another process sees it; whoever opens it closes it. */
  openAgain(): Promise<Storage>;
  makeToken(wish: NewToken): Promise<string>;
}

export const engines = ["SQLite", "PostgreSQL"] as const;
export type Engine = (typeof engines)[number];

/** One storage and one app for a test file; the hooks open and close them. */
export function openWorld(
  engine: Engine,
  config: Partial<Parameters<typeof assemble>[0]> = {},
  log = createLog("off", () => {}),
): World {
  let place: Place | undefined;
  let storage: Storage | undefined;
  let assembly: Assembly | undefined;
  beforeAll(async () => {
    place = await makePlace(engine);
    const plantsMax = config.usage?.plantsMax;
    storage = await openStorage(place.address, { isServing: true, plantsMax });
    assembly = assemble({ basePath: "", corsOrigins: "*", ...config }, storage, log);
    await assembly.authenticator.refresh();
  });
  afterAll(async () => {
    await storage?.close();
    await place?.remove();
  });
  const opened = <Part>(part: Part | undefined): Part => {
    if (part === undefined) throw new Error("The world is not open yet.");
    return part;
  };
  return {
    get storage() {
      return opened(storage);
    },
    get assembly() {
      return opened(assembly);
    },
    async fetch(request, init = {}) {
      const [method = "GET", target = "/"] = request.split(" ");
      const headers = new Headers(init.headers);
      if (!headers.has("host")) headers.set("host", "plants.test");
      if (typeof init.body === "string" && !headers.has("content-length")) {
        headers.set("content-length", String(Buffer.byteLength(init.body)));
      }
      const url = `http://plants.test${target}`;
      return opened(assembly).app.fetch(new Request(url, { ...init, method, headers }));
    },
    openAgain: () => openStorage(opened(place).address, { isServing: false }),
    async makeToken(wish) {
      const { token } = await issueToken(opened(storage), wish, Date.now());
      return token;
    },
  };
}

/** Where a storage can be opened. */
interface Place {
  readonly address: string;
  remove(): Promise<void>;
}

async function makePlace(engine: Engine): Promise<Place> {
  if (engine === "PostgreSQL") {
    const database = await makeDatabase();
    return { address: database.url, remove: database.drop };
  }
  const folder = makeTemporaryFolder();
  return {
    address: join(folder.path, "plants.db"),
    remove: async () => folder[Symbol.dispose](),
  };
}

export function checkHeaders(
  headers: Headers,
  expected: Readonly<Record<string, string | RegExp | null>>,
): void {
  for (const [name, value] of Object.entries(expected)) {
    if (value instanceof RegExp) expect(headers.get(name)).toMatch(value);
    else expect([name, headers.get(name)]).toEqual([name, value]);
  }
}
