/** Many threads and instances, one service: it does not matter which of them gets a connection. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
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
const asStream = { accept: "text/event-stream" };

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

/** Creates plants through many connections, which the kernel gives to all threads. */
function createOnAllThreads(service: Service, count: number) {
  return sendAll(count, () => callAnew(service, "POST /plants", { body: fern }));
}

/** Sends 16 requests at once, each on a new connection, and returns the responses. */
function callAnewOften(service: Service, request: string, token?: string): Promise<Response[]> {
  const init = token === undefined ? {} : { token };
  return Promise.all(Array.from({ length: 16 }, () => callAnew(service, request, init)));
}

/** Opens streams of events, each on a connection of its own. */
function openStreams(service: Service, count: number): Promise<EventStreamReader[]> {
  const headers = { ...asStream, connection: "close" };
  const open = async () => new EventStreamReader(await service.call("GET /events", { headers }));
  return Promise.all(Array.from({ length: count }, open));
}

test("every thread lists a plant as soon as it is created", async () => {
  await using service = await serveHere({ threads: "3" });
  await waitForThreads(service, 3);

  for (let plantsCount = 1; plantsCount <= 5; plantsCount++) {
    // Now every thread may have cached the list, and the next plant makes it out of date.
    await callAnewOften(service, "GET /plants");

    const created = await callAnew(service, "POST /plants", { body: fern });
    expect(created.status).toBe(201);

    for (const list of await callAnewOften(service, "GET /plants")) {
      expect(await list.json()).toHaveLength(plantsCount);
    }
  }
});

test("threads hold a garden's limit of plants exactly", async () => {
  await using service = await serveHere({ threads: "3", "garden-plants-max": "57" });
  await waitForThreads(service, 3);

  const statuses = await createOnAllThreads(service, 100);

  expect(statuses).toEqual({ 201: 57, 507: 43 });
});

test("threads write one log", async () => {
  await using service = await serveHere({ threads: "3", "garden-plants-max": "57" });
  await waitForThreads(service, 3);

  await createOnAllThreads(service, 100);

  const lines = await waitFor(() => {
    const written = service.readLog("request");
    return written.length >= 100 ? written : undefined;
  });
  expect(lines).toHaveLength(100);
  expect(lines.filter(({ status }) => status === 507)).toHaveLength(43);
  // A request id starts with a prefix of its thread.
  const threads = new Set(lines.map(({ requestId }) => requestId.split("-")[0]));
  expect(threads.size).toBe(3);
});

describe("with a rate limit of 123 requests, two threads", () => {
  let service: Service;
  let statuses: Record<number, number>;

  beforeAll(async () => {
    service = await serveHere({ threads: "2", "rate-limit": "123/d" }, { sendReportMs: 50 });
    await waitForThreads(service, 2);
    statuses = await sendAll(200, () => callAnew(service, "GET /plants?limit=1"));
  });
  afterAll(() => service[Symbol.asyncDispose]());

  test("let exactly 123 of 200 requests pass", () => {
    expect(statuses).toEqual({ 200: 123, 429: 77 });
  });

  test("count the 77 refusals in one metric", async () => {
    const readRefusals = () => readMetric(service, 'refusals_total{limit="requests"}');

    await waitFor(async () => (await readRefusals()) === 77 || undefined);
  });
});

test("streams on all threads get every event", async () => {
  await using service = await serveHere({ threads: "2" });
  await waitForThreads(service, 2);
  const streams = await openStreams(service, 20);

  expect((await service.call("POST /plants", { body: fern })).status).toBe(201);
  expect((await service.call("POST /plants", { body: fern })).status).toBe(201);

  for (const stream of streams) {
    expect(await stream.take(2)).toMatchObject([{ id: 1 }, { id: 2 }]);
  }
});

test("streams on all threads end when the service stops", async () => {
  await using service = await serveHere({ threads: "2" });
  await waitForThreads(service, 2);
  const streams = await openStreams(service, 20);

  const stopping = service.stop();

  for (const stream of streams) expect(await stream.next()).toBeUndefined();
  await stopping;
});

test("all threads refuse a token that another process revoked", async () => {
  await using service = await serveHere({ threads: "2" }, { refreshTokensMs: 50 });
  await waitForThreads(service, 2);
  const token = await makeToken(service, "bob");
  const listOften = async () => {
    const responses = await callAnewOften(service, "GET /plants", token);
    return responses.map(({ status }) => status);
  };
  for (const status of await listOften()) expect(status).toBe(200);

  await revokeTokens(service, "bob");

  await waitFor(async () => (await listOften()).every((status) => status === 401) || undefined);
});

describe("two instances on PostgreSQL", () => {
  let database: TestDatabase;
  let first: Service;
  let second: Service;

  beforeAll(async () => {
    database = await makeDatabase();
    const settings = { "garden-plants-max": "57", "database-pool-size": "3" };
    first = await serveHere(
      { ...settings, database: database.url, threads: "2" },
      { sendReportMs: 50, mayRefuse: true },
    );
    await waitForThreads(first, 2);
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

  /** A token to a garden that no other test uses, which both instances take. */
  const openGarden = (name: string) => makeToken({ database: database.url }, name);

  test("take the password from the URL, or from PGPASSWORD", async () => {
    expect((await first.call("GET /readyz")).status).toBe(200);
    expect((await second.call("GET /readyz")).status).toBe(200);
  });

  test("share tokens", async () => {
    // It was made through the first instance.
    const { token } = first;

    expect((await second.call("GET /plants", { token })).status).toBe(200);
  });

  test("share plants", async () => {
    const token = await openGarden("ada");

    const created = await first.call("POST /plants", { token, body: fern });

    expect(created.status).toBe(201);
    const list = await second.call("GET /plants", { token });
    expect(await list.json()).toEqual([{ name: "Fern", tag: "" }]);
  });

  test("share idempotency keys", async () => {
    const token = await openGarden("ben");
    const headers = { "Idempotency-Key": "k" };
    const created = await first.call("POST /plants", { token, headers, body: fern });
    expect(created.status).toBe(201);

    const replayed = await second.call("POST /plants", { token, headers, body: fern });

    expect(replayed.headers.get("idempotency-replayed")).toBe("true");
    const list = await second.call("GET /plants", { token });
    expect(await list.json()).toHaveLength(1);
  });

  test("share events", async () => {
    const token = await openGarden("cleo");
    const response = await second.call("GET /events", { token, headers: asStream });
    const stream = new EventStreamReader(response);

    await first.call("POST /plants", { token, body: fern });

    expect(await stream.next()).toMatchObject({ data: { plant: { id: 1, name: "Fern" } } });
    await stream.close();
  });

  test("hold a garden's limit of plants exactly", async () => {
    const token = await openGarden("dora");

    const statuses = await sendAll(100, (index) => {
      const service = index % 2 === 0 ? first : second;
      return callAnew(service, "POST /plants", { token, body: fern });
    });

    expect(statuses).toEqual({ 201: 57, 507: 43 });
  });

  test("divide their pool of connections among their threads", async () => {
    const readConnectionsMax = () => readMetric(first, "pool_connections_max");

    // Of the three that the process may have, each of its two threads gets one.
    await waitFor(async () => (await readConnectionsMax()) === 2 || undefined);
  });

  describe("while another program has locked a garden", () => {
    let lockedToken: string;
    let otherToken: string;

    beforeAll(async () => {
      lockedToken = await openGarden("locked");
      otherToken = await openGarden("other");
      // Only a garden that was used has a row to lock.
      await first.call("POST /plants", { token: lockedToken, body: fern });
    });

    /** Locks the garden until the result is unlocked or disposed of. */
    async function lockGarden() {
      const client = new Client(database.url);
      await client.connect();
      await client.query("BEGIN; SELECT FROM gardens WHERE garden = 'locked' FOR UPDATE");
      return {
        unlock: () => client.query("COMMIT"),
        [Symbol.asyncDispose]: () => client.end(),
      };
    }
    const writeToLocked = () => first.call("POST /plants", { token: lockedToken, body: fern });
    const writeToOther = () => first.call("POST /plants", { token: otherToken, body: fern });
    /** Threads report their counts to each other some time later. */
    const waitForCount = (sample: string, count: number) =>
      waitFor(
        async () => (await readMetric(first, sample)) >= count || undefined,
        undefined,
        5_000,
      );

    test("delay that garden's writes, and no others, until it is unlocked", async () => {
      const waitsBefore = await readMetric(first, "garden_wait_seconds_count");
      await using lock = await lockGarden();
      let areWritten = false;
      const writing = Promise.all(Array.from({ length: 20 }, writeToLocked)).finally(() => {
        areWritten = true;
      });

      for (let count = 0; count < 5; count++) {
        expect((await writeToOther()).status).toBe(201);
        await Bun.sleep(50);
      }
      expect(areWritten).toBe(false);
      await lock.unlock();

      for (const { status } of await writing) expect(status).toBe(201);
      await waitForCount("garden_wait_seconds_count", waitsBefore + 20);
    });

    describe("for several seconds", () => {
      let lock: Awaited<ReturnType<typeof lockGarden>>;
      let refusalsBefore: number;
      let refused: Response;

      beforeAll(async () => {
        lock = await lockGarden();
        refusalsBefore = await readMetric(first, "garden_refusals_total");
        refused = await writeToLocked();
      }, 60_000);
      afterAll(() => lock[Symbol.asyncDispose]());

      test("refuse that garden's writes, and say why", async () => {
        expect(refused.status).toBe(503);
        const { detail } = await refused.json();
        expect(detail).toContain(
          "another instance is busy with it, or another program has locked it",
        );
      });

      test("count the refused write", async () => {
        await waitForCount("garden_refusals_total", refusalsBefore + 1);
      });

      test("are still ready", async () => {
        expect((await first.call("GET /readyz")).status).toBe(200);
      });

      test("still write to other gardens", async () => {
        expect((await writeToOther()).status).toBe(201);
      });
    });
  });
});

describe("a service one of whose threads dies", () => {
  test.each([
    { thread: "a thread that serves requests", file: "worker-thread.ts" },
    { thread: "the thread that writes to SQLite", file: "worker.ts" },
  ])("ends with exit code 1 and says why: $thread", async ({ file }) => {
    using folder = makeTemporaryFolder();
    const flag = join(folder.path, "die");
    await using service = await startService({
      args: ["--threads", "2", "--log", "json"],
      program: join(import.meta.dir, "dying-thread.ts"),
      variables: { DYING_THREAD: file, DYING_FLAG: flag },
    });
    await waitForThreads(service, 2);

    writeFileSync(flag, "");

    expect(await service.exited).toBe(1);
    await waitFor(() => service.output().errors.includes("A thread broke down") || undefined);
    expect(service.output().out).toContain('"event":"broken down"');
  });
});
