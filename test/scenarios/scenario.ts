/** The whole service without its socket, on a real storage. */
import { afterAll, beforeAll, expect } from "bun:test";
import { makePlace, type Place } from "../../proofs/audited-store.ts";
import { issueToken, type NewToken } from "../../src/auth/opaque-token.ts";
import { createLog } from "../../src/log.ts";
import { type Assembly, assemble } from "../../src/server/listener.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { create } from "../storage/tested-storage.ts";

export const engines = ["SQLite", "PostgreSQL"] as const;
export type Engine = (typeof engines)[number];

export class World {
  database = "";
  storage!: Storage;
  assembly!: Assembly;

  async fetch(request: string, init: RequestInit = {}): Promise<Response> {
    const [method = "GET", target = "/"] = request.split(" ");
    const headers = new Headers(init.headers);
    if (!headers.has("host")) headers.set("host", "plants.test");
    if (typeof init.body === "string" && !headers.has("content-length")) {
      headers.set("content-length", String(Buffer.byteLength(init.body)));
    }
    const url = `http://plants.test${target}`;
    return this.assembly.app.fetch(new Request(url, { ...init, method, headers }));
  }

  /** As `fetch`, with a token; the body is JSON. */
  call(token: string, request: string, body?: object, others?: HeadersInit): Promise<Response> {
    const headers = new Headers(others);
    headers.set("authorization", `Bearer ${token}`);
    if (body) headers.set("content-type", "application/json");
    return this.fetch(request, { headers, ...(body && { body: JSON.stringify(body) }) });
  }

  async makeToken(fields: NewToken): Promise<string> {
    return (await issueToken(this.storage, fields, Date.now())).token;
  }

  /** Creates plants with these ids, and a token to their garden. */
  async plant(garden: string, ids: readonly bigint[]): Promise<string> {
    await this.storage.apply(ids.map((id) => create({ garden, id, name: `Plant ${id}` })));
    return this.makeToken({ user: "planter", garden });
  }
}

/** One storage and one app for a test file; the hooks open and close them. */
export function openWorld(
  engine: Engine,
  config: Partial<Parameters<typeof assemble>[0]> = {},
  log = createLog("off", () => {}),
): World {
  const world = new World();
  let place: Place | undefined;
  beforeAll(async () => {
    place = await makePlace(engine === "SQLite" ? "sqlite" : "postgres");
    world.database = place.database;
    world.storage = await openStorage(place.database, {
      isServing: true,
      plantsMax: config.usage?.plantsMax,
      withoutEvents: config.events === "off",
    });
    world.assembly = assemble({ basePath: "", corsOrigins: "*", ...config }, world.storage, log);
    await world.assembly.authenticator.refresh();
  });
  afterAll(async () => {
    await world.storage?.close();
    await place?.[Symbol.asyncDispose]();
  });
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

export function checkHeaders(
  headers: Headers,
  expected: Readonly<Record<string, string | RegExp | null>>,
): void {
  for (const [name, value] of Object.entries(expected)) {
    if (value instanceof RegExp) expect(headers.get(name)).toMatch(value);
    else expect([name, headers.get(name)]).toEqual([name, value]);
  }
}
