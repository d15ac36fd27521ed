/** What the service does besides serving requests: periodic tasks, and metrics of the storage. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { Authenticator } from "../../src/auth/authenticator.ts";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { makePlace, type Place } from "../../testing/audited-store.ts";
import { fillStore } from "../../testing/filled-store.ts";
import { readMetric, serveHere, startService, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { create } from "../../testing/tested-storage.ts";
import { engines } from "../contract/garden.ts";

const fern = '{"name":"Fern"}';
const minuteMs = 60_000;
const weekMs = 7 * 24 * 60 * minuteMs;

type Service = Awaited<ReturnType<typeof serveHere>>;

describe.each([
  { quota: "without a quota", settings: {}, intervals: { forgetEventsMs: 20 } },
  {
    quota: "with a quota",
    settings: { "garden-plants-max": "1000" },
    intervals: { forgetEventsUnderQuotaMs: 20 },
  },
])("$quota, a service", ({ settings, intervals }) => {
  let service: Service;
  /** A second opening of the service's storage, as a command has one. */
  let storage: Awaited<ReturnType<typeof openStorage>>;

  beforeAll(async () => {
    service = await serveHere(
      { threads: "2", ...settings },
      { noteTokenUsesMs: 20, forgetIdempotencyKeysMs: 20, ...intervals },
    );
    storage = await openStorage(service.database, { isServing: false });
  });
  afterAll(async () => {
    await storage.close();
    await service[Symbol.asyncDispose]();
  });

  test("notes when a token was last used", async () => {
    const nowMs = Date.now();
    const { token, record } = await issueToken(storage, { user: "ben" }, nowMs);

    expect((await service.call("GET /plants", { token })).status).toBe(200);

    const lastUsedAtMs = await waitFor(async () => {
      const tokens = await storage.listTokens();
      return tokens.find(({ id }) => id === record.id)?.lastUsedAtMs;
    });
    expect(lastUsedAtMs).toBeGreaterThanOrEqual(nowMs);
  });

  test("forgets idempotency keys that have expired, and no others", async () => {
    const nowMs = Date.now();
    const apply = async (key: string, name: string, atMs: number) => {
      const idempotency = { key, nowMs: atMs, expiresAtMs: atMs + minuteMs };
      const [outcome] = await storage.apply([create({ name, idempotency })]);
      return outcome?.kind;
    };
    await apply("live", "Fern", nowMs);
    await apply("expired", "Fern", 0);

    // As long as a key is remembered, it is refused for another plant.
    await waitFor(async () => (await apply("expired", "Moss", 0)) === "created" || undefined);

    expect(await apply("live", "Moss", nowMs)).not.toBe("created");
  });

  test("forgets events that are older than seven days, and no others", async () => {
    const nowMs = Date.now();
    await storage.apply([
      create({ garden: "dora", atMs: nowMs - weekMs - 1_000 }),
      create({ garden: "dora", atMs: nowMs - weekMs + minuteMs }),
    ]);

    const kept = await waitFor(async () => {
      const { events } = await storage.readEvents("dora", undefined, 1, 99);
      return events[0]?.seq === 1 ? undefined : events;
    });

    expect(kept).toMatchObject([{ seq: 2 }]);
  });
});

test("a task that throws is logged, and runs again", async () => {
  using noteUses = spyOn(Authenticator.prototype, "noteUses").mockImplementationOnce(() => {
    throw new Error("A bug.");
  });

  await using service = await serveHere({}, { noteTokenUsesMs: 20 });

  await waitFor(() => noteUses.mock.calls[2]);
  expect(service.readLog("token use update failed")).toHaveLength(1);
});

test("a bug in what counts commits doesn't end all writes", async () => {
  await using service = await startService({
    args: ["--threads", "1"],
    program: join(import.meta.dir, "throwing-counter.ts"),
  });
  const createPlant = () => service.call("POST /plants", { body: fern });

  const unlucky = createPlant().catch(() => {});
  await waitFor(() => service.output().errors.includes("A bug.") || undefined);

  expect((await createPlant()).status).toBe(201);
  service.signal("SIGKILL");
  await unlucky;
});

test("a service without events deletes the older ones when it starts", async () => {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  await fillStore(database, 1);
  const storage = await openStorage(database, { isServing: false });
  const countEvents = async () =>
    (await storage.readEvents("home", undefined, 1, 99)).events.length;
  expect(await countEvents()).toBe(1);

  await using _service = await serveHere({ database, events: "off" });

  await waitFor(async () => (await countEvents()) === 0 || undefined);
  await storage.close();
});

describe.each(engines)("the metrics on %s", (engine) => {
  let place: Place;
  let service: Service;

  beforeAll(async () => {
    place = await makePlace(engine === "SQLite" ? "sqlite" : "postgres");
    service = await serveHere({ database: place.database, "garden-plants-max": "3" });

    // Of five plants in one write, three fit into the garden.
    const bulk = `[${Array(5).fill(fern)}]`;
    expect((await service.call("POST /plants/bulk", { body: bulk })).status).toBe(200);
    expect((await service.call("POST /plants", { body: fern })).status).toBe(507);
    expect((await service.call("DELETE /plants/1")).status).toBe(204);
    expect((await service.call("DELETE /plants/2")).status).toBe(204);
    expect((await service.call("GET /plants/3")).status).toBe(200);
    expect((await service.call("GET /plants/3")).status).toBe(200);
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await place[Symbol.asyncDispose]();
  });

  test("count each plant that a full garden refused", async () => {
    expect(await readMetric(service, 'refusals_total{limit="plants"}')).toBe(3);
  });

  test("count reads", async () => {
    expect(await readMetric(service, "read_duration_seconds_count")).toBe(2);
  });

  test("count commits, and the waits for them", async () => {
    expect(await readMetric(service, "commit_duration_seconds_count")).toBe(4);
    expect(await readMetric(service, "commit_wait_seconds_count")).toBe(4);
  });

  test("say that the service is ready", async () => {
    expect(await readMetric(service, "ready")).toBe(1);
  });
});

test("the metrics say that a service isn't ready without its SQLite file", async () => {
  await using service = await serveHere();
  await service.call("POST /plants", { body: fern });

  renameSync(service.database, `${service.database}.gone`);

  expect(await readMetric(service, "ready")).toBe(0);
});
