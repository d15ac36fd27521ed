/** The whole service without its socket, on a real storage. */
import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import { issueToken, type NewToken } from "../../src/auth/opaque-token.ts";
import { createLog } from "../../src/log.ts";
import { type Assembly, assemble } from "../../src/server/assembly.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { makeDatabase } from "../postgres-server.ts";
import { create } from "../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

export interface World {
  readonly storage: Storage;
  readonly assembly: Assembly;
  fetch(request: string, init?: RequestInit): Promise<Response>;
  /** As `fetch`, with a token; the body is JSON. */
  call(token: string, request: string, body?: object, headers?: HeadersInit): Promise<Response>;
  /** The same data as another process sees it; whoever opens it closes it. */
  openAgain(): Promise<Storage>;
  makeToken(token: NewToken): Promise<string>;
  /** Creates plants with these ids, and a token to their garden. */
  plant(garden: string, ids: readonly bigint[]): Promise<string>;
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
  const world: World = {
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
    call(token, request, body, others) {
      const headers = new Headers(others);
      headers.set("authorization", `Bearer ${token}`);
      if (body) headers.set("content-type", "application/json");
      return world.fetch(request, { headers, ...(body && { body: JSON.stringify(body) }) });
    },
    async makeToken(fields) {
      const { token } = await issueToken(opened(storage), fields, Date.now());
      return token;
    },
    async plant(garden, ids) {
      await opened(storage).apply(ids.map((id) => create({ garden, id, name: `Plant ${id}` })));
      return world.makeToken({ user: "planter", garden });
    },
  };
  return world;
}

/** What goes wrong while the rest of a response is read. */
export async function readToFailure(response: Response, meanwhile: () => Promise<void>) {
  const reader = response.body?.getReader();
  await reader?.read();
  await meanwhile();
  const readRest = async () => {
    while (!(await reader?.read())?.done);
  };
  return readRest().catch((error) => error);
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
