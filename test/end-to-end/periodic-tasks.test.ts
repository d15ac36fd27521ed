/** Periodic tasks of the service, at intervals short enough for a test. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { issueToken } from "../../src/auth/opaque-token.ts";
import type { Idempotency } from "../../src/domain/ports.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { create, created, put } from "../storage/tested-storage.ts";
import { serveHere, waitFor } from "./running-service.ts";

let service: Awaited<ReturnType<typeof serveHere>>;
/** Another opening of its storage, as a command would have it. */
let beside: Storage;

beforeAll(async () => {
  service = await serveHere(
    { threads: "2", "garden-plants-max": "1000" },
    { noteTokenUsesMs: 20, forgetIdempotencyKeysMs: 20, forgetEventsUnderQuotaMs: 20 },
  );
  beside = await openStorage(service.database, { isServing: false });
});

afterAll(async () => {
  await beside.close();
  await service[Symbol.asyncDispose]();
});

test("the last use of a token is noted while the service runs", async () => {
  const { token, record } = await issueToken(beside, { user: "ben" }, Date.now());
  const usedFromMs = Date.now();
  expect((await service.call("GET /plants", { token })).status).toBe(200);
  const usedAtMs = await waitFor(
    async () => (await beside.listTokens()).find(({ id }) => id === record.id)?.lastUsedAtMs,
  );
  expect(usedAtMs).toBeGreaterThanOrEqual(usedFromMs);
});

test("idempotency keys are forgotten once they have expired, and not before", async () => {
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

const oldest = async (garden: string) =>
  (await beside.readEvents(garden, undefined, 1, 99)).events[0]?.seq;

test("events are forgotten once they are a week old, and not before", async () => {
  const weekAgoMs = Date.now() - 7 * 86_400_000;
  for (const garden of ["dora", "later"]) {
    const times = [weekAgoMs - 1_000, weekAgoMs + 60_000];
    await beside.apply(times.map((atMs) => create({ garden, atMs })));
    await waitFor(async () => (await oldest(garden)) === 2 || undefined);
  }
  // In the later rounds, too.
  expect(await oldest("dora")).toBe(2);
});

test("with a quota, events beyond ten thousand are forgotten, and 410 says so", async () => {
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
  const { token } = await issueToken(beside, { user: "ann", garden: "fay" }, Date.now());
  const read = async (after: number) =>
    (await service.call(`GET /events?limit=1&after=${after}`, { token })).status;
  await waitFor(async () => (await read(0)) === 410 || undefined);
  expect([await read(1), await oldest("fay"), await oldest("emil")]).toEqual([200, 2, 1]);
});
