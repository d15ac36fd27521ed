/** Periodic tasks of the service, on both engines, at intervals short enough for a test. */
import { afterAll, describe, expect, test } from "bun:test";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { readConfig } from "../../src/config.ts";
import type { Idempotency } from "../../src/domain/ports.ts";
import { createLog } from "../../src/log.ts";
import { type Service, serve } from "../../src/server/serve.ts";
import { openStorage } from "../../src/storage/open.ts";
import { makeDatabase } from "../postgres-server.ts";
import { create, created, put } from "../storage/tested-storage.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { waitFor } from "./running-service.ts";

const soonMs = 20;
const threads = "2";

/** A service in this process, and a second opening of its storage as a command would have it. */
async function start(
  database: string,
  intervals: Parameters<typeof serve>[2],
  settings: Record<string, string> = {},
) {
  const config = readConfig({ port: "0", threads, database, ...settings }, {});
  const log = createLog("off", () => {});
  const service = await serve(config, log, intervals);
  const beside = await openStorage(database, { isServing: false });
  return {
    service,
    beside,
    async [Symbol.asyncDispose]() {
      await beside.close();
      await service.stop();
    },
  };
}

/** On a connection of its own, so that any thread may get it. */
async function list({ url }: Service, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, connection: "close" };
  return (await fetch(`${url}/plants`, { headers })).status;
}

const folder = makeTemporaryFolder();
const postgres = await makeDatabase();
afterAll(async () => {
  folder[Symbol.dispose]();
  await postgres.drop();
});

describe.each([
  ["SQLite", `${folder.path}/plants.db`],
  ["PostgreSQL", postgres.url],
])("on %s", (_, database) => {
  test("the last use of a token is noted while the service runs", async () => {
    await using running = await start(database, { noteTokenUsesMs: soonMs });
    const { service, beside } = running;
    const { token, record } = await issueToken(beside, { user: "ben" }, Date.now());
    const usedFromMs = Date.now();
    expect(await list(service, token)).toBe(200);
    const usedAtMs = await waitFor(
      async () => (await beside.listTokens()).find(({ id }) => id === record.id)?.lastUsedAtMs,
    );
    expect(usedAtMs).toBeGreaterThanOrEqual(usedFromMs);
  });

  test("idempotency keys are forgotten once they have expired, and not before", async () => {
    await using running = await start(database, { forgetIdempotencyKeysMs: soonMs });
    const { beside } = running;
    const nowMs = Date.now();
    const keyed = (idempotency: Partial<Idempotency>, name = "Fern") =>
      create({
        garden: "cleo",
        name,
        idempotency: { key: "live", nowMs, expiresAtMs: nowMs + 60_000, ...idempotency },
      });
    const expired = { key: "expired", nowMs: 0, expiresAtMs: 1 };
    await beside.apply([keyed({}), keyed(expired)]);
    await waitFor(async () => {
      // It is refused for as long as the first request is remembered.
      const [outcome] = await beside.apply([keyed(expired, "another")]);
      return outcome?.kind === "created" || undefined;
    });
    expect(await beside.apply([keyed({})])).toEqual([created(1n, true)]);
  });

  test("events are forgotten once they are a week old, and not before", async () => {
    await using running = await start(database, { forgetEventsMs: soonMs });
    const { beside } = running;
    const weekAgoMs = Date.now() - 7 * 86_400_000;
    const times = [weekAgoMs - 1_000, weekAgoMs + 60_000];
    await beside.apply(times.map((atMs) => create({ garden: "dora", atMs })));
    const oldest = async () => (await beside.readEvents("dora", undefined, 1, 99)).events[0]?.seq;
    await waitFor(async () => ((await oldest()) === 2 ? true : undefined));
    await Bun.sleep(5 * soonMs);
    expect(await oldest()).toBe(2);
  });

  test("with a quota, events beyond ten thousand are forgotten, and 410 says so", async () => {
    const intervals = { forgetEventsUnderQuotaMs: soonMs };
    await using running = await start(database, intervals, { "garden-plants-max": "1000" });
    const { service, beside } = running;
    const atMs = Date.now();
    const eventsMax = 10_000;
    // In two gardens, of which only the second has one event too many.
    for (const [garden, events] of [
      ["emil", eventsMax],
      ["fay", eventsMax + 1],
    ] as const) {
      await beside.apply([create({ garden, id: 1n, atMs })]);
      const rename = (index: number) => put({ garden, id: 1n, name: `Fern ${index}`, atMs });
      await beside.apply(Array.from({ length: events - 1 }, (_, index) => rename(index)));
    }
    const makeToken = async (garden: string) =>
      (await issueToken(beside, { user: "ann", garden }, Date.now())).token;
    const [emil, fay] = [await makeToken("emil"), await makeToken("fay")];
    const read = async (token: string, query: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`${service.url}/events?limit=1${query}`, { headers });
      const body = await response.json();
      return response.ok ? body[0].seq : response.status;
    };
    await waitFor(async () => ((await read(fay, "&after=0")) === 410 ? true : undefined));
    expect(await read(fay, "")).toBe(2);
    expect(await read(fay, "&after=1")).toBe(2);
    expect(await read(emil, "&after=0")).toBe(1);
  });
});
