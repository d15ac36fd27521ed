/** What the service does besides serving requests: periodic tasks, and metrics of the storage. */
import { expect, spyOn, test } from "bun:test";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { Authenticator } from "../../src/auth/authenticator.ts";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { fillStore } from "../../testing/filled-store.ts";
import { makeDatabase } from "../../testing/postgres-server.ts";
import { readMetric, serveHere, startService, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { create } from "../../testing/tested-storage.ts";
import { engines } from "../contract/garden.ts";

const weekMs = 7 * 86_400_000;

test.each([
  ["without a quota", {}, { forgetEventsMs: 20 }],
  ["with a quota", { "garden-plants-max": "1000" }, { forgetEventsUnderQuotaMs: 20 }],
])(
  "%s, uses of tokens are noted, and expired keys and events forgotten",
  async (_, settings, intervals) => {
    const soon = { noteTokenUsesMs: 20, forgetIdempotencyKeysMs: 20, ...intervals };
    await using service = await serveHere({ threads: "2", ...settings }, soon);
    // Another opening of its storage, as a command would have it.
    const beside = await openStorage(service.database, { isServing: false });
    const nowMs = Date.now();
    const { token, record } = await issueToken(beside, { user: "ben" }, nowMs);
    expect((await service.call("GET /plants", { token })).status).toBe(200);
    const usedAtMs = await waitFor(
      async () => (await beside.listTokens()).find(({ id }) => id === record.id)?.lastUsedAtMs,
    );
    expect(usedAtMs).toBeGreaterThanOrEqual(nowMs);

    // A key is refused for another plant as long as it is remembered.
    const keyed = (key: string, atMs: number, name: string) =>
      create({ name, idempotency: { key, nowMs: atMs, expiresAtMs: atMs + 60_000 } });
    await beside.apply([keyed("live", nowMs, "Fern"), keyed("expired", 0, "Fern")]);
    const reuse = async (key: string, atMs: number) =>
      (await beside.apply([keyed(key, atMs, "another")]))[0]?.kind;
    await waitFor(async () => (await reuse("expired", 0)) === "created" || undefined);
    expect(await reuse("live", nowMs)).not.toBe("created");

    const times = [nowMs - weekMs - 1_000, nowMs - weekMs + 60_000];
    await beside.apply(times.map((atMs) => create({ garden: "dora", atMs })));
    const isForgotten = async () =>
      (await beside.readEvents("dora", undefined, 1, 99)).events[0]?.seq === 2 || undefined;
    await waitFor(isForgotten);
    await beside.close();
  },
);

test("a task that throws is logged, and runs again", async () => {
  using noteUses = spyOn(Authenticator.prototype, "noteUses").mockImplementationOnce(() => {
    throw new Error("A bug.");
  });
  await using service = await serveHere({}, { noteTokenUsesMs: 20 });
  await waitFor(() => noteUses.mock.calls[2]);
  expect(service.readLog("token use update failed")).toHaveLength(1);
});

test("a bug in what counts commits doesn't end all writes", async () => {
  const program = join(import.meta.dir, "throwing-counter.ts");
  await using service = await startService({ args: ["--threads", "1"], program });
  const create = () => service.call("POST /plants", { body: '{"name":"Fern"}' });
  const unlucky = create().catch(() => {});
  await waitFor(() => service.output().errors.includes("A bug.") || undefined);
  expect((await create()).status).toBe(201);
  service.signal("SIGKILL");
  await unlucky;
});

test("where events are switched off, the older ones are deleted at once", async () => {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  await fillStore(database, 1);
  const beside = await openStorage(database, { isServing: false });
  const countEvents = async () => (await beside.readEvents("home", undefined, 1, 99)).events.length;
  expect(await countEvents()).toBe(1);
  await using _service = await serveHere({ database, events: "off" });
  await waitFor(async () => (await countEvents()) === 0 || undefined);
  await beside.close();
});

test.each(engines)("on %s, reads, commits and refused plants are counted", async (engine) => {
  await using own = engine === "SQLite" ? undefined : await makeDatabase();
  const settings = { "garden-plants-max": "3", ...(own && { database: own.url }) };
  await using service = await serveHere(settings);
  const body = `[${Array.from({ length: 5 }, () => '{"name":"Fern"}')}]`;
  expect((await service.call("POST /plants/bulk", { body })).status).toBe(200);
  expect((await service.call("POST /plants", { body: '{"name":"Fern"}' })).status).toBe(507);
  for (const id of [1, 2]) await service.call(`DELETE /plants/${id}`);
  for (let count = 0; count < 2; count++) await service.call("GET /plants/3");
  for (const [sample, count] of [
    ['refusals_total{limit="plants"}', 3],
    ["read_duration_seconds_count", 2],
    ["commit_duration_seconds_count", 4],
    ["commit_wait_seconds_count", 4],
    ["ready", 1],
  ] as const) {
    expect([sample, await readMetric(service, sample)]).toEqual([sample, count]);
  }
  if (engine === "PostgreSQL") return;
  renameSync(service.database, `${service.database}.gone`);
  expect(await readMetric(service, "ready")).toBe(0);
});
