/** Many threads and instances, one service: it does not matter which of them gets a connection. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { EventStreamReader } from "../../testing/event-reader.ts";
import { makeDatabase, type TestDatabase } from "../../testing/postgres-server.ts";
import {
  callAnew,
  makeToken,
  readMetric,
  revokeTokens,
  serveHere,
  startService,
  waitFor,
  waitForThreads,
} from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const fern = '{"name":"Fern"}';

type Service = Awaited<ReturnType<typeof serveHere>>;

/** Far fewer than would wait too long on a busy machine. */
const clientsCount = 16;

/** Sends as many requests, by many clients at once, and counts the responses by status. */
async function sendAll(count: number, send: (index: number) => Promise<Response>) {
  const statuses: Record<number, number> = {};
  const indexes = Array(count).keys();
  const runClient = async () => {
    for (const index of indexes) {
      const { status } = await send(index);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: clientsCount }, runClient));
  return statuses;
}

/** Creates plants through the services in turn. */
function create(count: number, services: readonly [Service, ...Service[]]) {
  const [{ token }] = services;
  return sendAll(count, (index) => {
    const service = services[index % services.length] ?? services[0];
    return callAnew(service, "POST /plants", { token, body: fern });
  });
}

test("threads show a plant as soon as it is created, write one log, and hold the quota exactly", async () => {
  const threads = 3;
  const settings = { threads: String(threads), "garden-plants-max": "57" };
  await using service = await serveHere(settings);
  await waitForThreads(service, threads);
  const list = async () => (await callAnew(service, "GET /plants")).json();
  const listAll = () => Promise.all(Array.from({ length: 16 }, list));
  for (let plants = 1; plants <= 5; plants++) {
    // Every thread may cache this list, which the plant makes out of date.
    await listAll();
    expect(await create(1, [service])).toEqual({ 201: 1 });
    expect(new Set((await listAll()).map(({ length }) => length))).toEqual(new Set([plants]));
  }
  expect(await create(100, [service])).toEqual({ 201: 52, 507: 48 });
  const lines = await waitFor(() => {
    const all = service.readLog("request");
    return all.filter(({ status }) => status === 507).length === 48 ? all : undefined;
  });
  expect(new Set(lines.map(({ requestId }) => requestId.split("-")[0])).size).toBe(threads);
});

test("threads pass together exactly as many requests as the rate limit says, and count together", async () => {
  const settings = { threads: "2", "rate-limit": "123/d" };
  await using service = await serveHere(settings, { sendReportMs: 50 });
  await waitForThreads(service, 2);
  const statuses = await sendAll(200, () => callAnew(service, "GET /plants?limit=1"));
  expect(statuses).toEqual({ 200: 123, 429: 77 });
  const refusals = () => readMetric(service, 'refusals_total{limit="requests"}');
  await waitFor(async () => (await refusals()) === 77 || undefined);
});

test("streams on all threads get every event, and end when the service stops", async () => {
  await using service = await serveHere({ threads: "2" });
  await waitForThreads(service, 2);
  const headers = { accept: "text/event-stream", connection: "close" };
  const open = async () => new EventStreamReader(await service.call("GET /events", { headers }));
  const readers = await Promise.all(Array.from({ length: 20 }, open));
  for (let count = 0; count < 2; count++) {
    expect((await service.call("POST /plants", { body: fern })).status).toBe(201);
  }
  for (const reader of readers) {
    expect((await reader.take(2)).map(({ id }) => id)).toEqual([1, 2]);
  }
  const stopping = service.stop();
  for (const reader of readers) expect(await reader.next()).toBeUndefined();
  await stopping;
});

test("a token that another process revoked is refused by all threads", async () => {
  await using service = await serveHere({ threads: "2" }, { refreshTokensMs: 50 });
  await waitForThreads(service, 2);
  const token = await makeToken(service, "bob");
  const ask = async () => (await callAnew(service, "GET /plants", { token })).status;
  const askAll = () => Promise.all(Array.from({ length: 16 }, ask));
  expect(await askAll()).not.toContain(401);
  await revokeTokens(service, "bob");
  await waitFor(async () => (await askAll()).every((status) => status === 401) || undefined);
});

describe("two instances on PostgreSQL", () => {
  let database: TestDatabase;
  let first: Service;
  let second: Service;

  beforeAll(async () => {
    database = await makeDatabase();
    const settings = { "garden-plants-max": "57", "database-pool-size": "3" };
    const onTwo = { ...settings, database: database.url, threads: "2" };
    first = await serveHere(onTwo, { sendReportMs: 50, mayRefuse: true });
    await waitForThreads(first, 2);
    // The password may be in PGPASSWORD instead of the URL.
    const { password } = new URL(database.url);
    process.env.PGPASSWORD = password;
    second = await serveHere({ ...settings, database: database.url.replace(`:${password}`, "") });
  });
  afterAll(async () => {
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    delete process.env.PGPASSWORD;
    await database.drop();
  });

  test("share plants, keys, tokens and events", async () => {
    const { token } = first;
    const headers = { accept: "text/event-stream" };
    const reader = new EventStreamReader(await second.call("GET /events", { token, headers }));
    const plant = { body: fern, headers: { "Idempotency-Key": "k" }, token };
    expect((await first.call("POST /plants", plant)).status).toBe(201);
    expect(await reader.next()).toMatchObject({ data: { plant: { id: 1, name: "Fern" } } });
    await reader.close();
    const again = await second.call("POST /plants", plant);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await (await second.call("GET /plants", { token })).json()).toHaveLength(1);
  });

  describe("while another program has locked a garden", () => {
    let intruder: Client;
    let otherToken: string;

    const write = (token = first.token) => first.call("POST /plants", { body: fern, token });
    /** Threads report their counts to each other some time later. */
    const untilCounted = (sample: string, count: number) =>
      waitFor(
        async () => (await readMetric(first, sample)) >= count || undefined,
        undefined,
        5_000,
      );
    const writeElsewhere = async () => (await write(otherToken)).status;

    beforeAll(async () => {
      otherToken = await makeToken({ database: database.url }, "other");
    });
    beforeEach(async () => {
      await write();
      intruder = new Client(database.url);
      await intruder.connect();
      await intruder.query("BEGIN; SELECT FROM gardens WHERE garden = 'gardener' FOR UPDATE");
    });
    afterEach(() => intruder.end());

    test("let its writes wait, and no other garden's", async () => {
      const waitsBefore = await readMetric(first, "garden_wait_seconds_count");
      let isOver = false;
      const held = Promise.all(Array.from({ length: 20 }, () => write())).finally(() => {
        isOver = true;
      });
      for (let count = 0; count < 5; count++) {
        expect(await writeElsewhere()).toBe(201);
        await Bun.sleep(50);
      }
      expect(isOver).toBe(false);
      await intruder.query("COMMIT");
      expect(new Set((await held).map(({ status }) => status))).toEqual(new Set([201]));
      await untilCounted("garden_wait_seconds_count", waitsBefore + 20);
    });

    test("refuse its writes after some seconds, say why, and are ready", async () => {
      const refusalsBefore = await readMetric(first, "garden_refusals_total");
      const refused = await write();
      expect(refused.status).toBe(503);
      const { detail } = await refused.json();
      expect(detail).toContain(
        "another instance is busy with it, or another program has locked it",
      );
      await untilCounted("garden_refusals_total", refusalsBefore + 1);
      // Only that garden is out of order, not the instance.
      expect((await first.call("GET /readyz")).status).toBe(200);
      expect(await writeElsewhere()).toBe(201);
    }, 60_000);
  });

  test("hold the quota exactly, and their threads share a pool", async () => {
    const { plants } = await (await first.call("GET /me")).json();
    const statuses = await create(100, [first, second]);
    expect(statuses).toEqual({ 201: 57 - plants, 507: 43 + plants });
    // One for each thread, of the three that the process may have.
    const connectionsMax = () => readMetric(first, "pool_connections_max");
    await waitFor(async () => (await connectionsMax()) === 2 || undefined);
  });
});

test.each(["worker-thread.ts", "worker.ts"])(
  "a service that loses %s ends with exit code 1 and says why",
  async (name) => {
    using folder = makeTemporaryFolder();
    const flag = join(folder.path, "die");
    await using service = await startService({
      args: ["--threads", "2", "--log", "json"],
      program: join(import.meta.dir, "dying-thread.ts"),
      variables: { DYING_THREAD: name, DYING_FLAG: flag },
    });
    await waitForThreads(service, 2);
    writeFileSync(flag, "");
    expect(await service.exited).toBe(1);
    await waitFor(() => service.output().errors.includes("A thread broke down") || undefined);
    expect(service.output().out).toContain('"event":"broken down"');
  },
);
