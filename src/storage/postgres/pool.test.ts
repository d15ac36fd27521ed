/** Connections and servers that go away: found again without a restart. */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import {
  makeDatabase,
  type PostgresServer,
  startPostgres,
  type TestDatabase,
} from "../../../test/postgres-server.ts";
import { create } from "../../../test/storage-contract/tested-storage.ts";
import type { Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";
import { PrimaryPool } from "./pool.ts";
import { parseUrl } from "./url.ts";

/** Servers take their time to start. */
setDefaultTimeout(120_000);

/** Short, so that what does not answer is given up while the test waits. */
const limits = { poolSize: 3, connectTimeoutMs: 2_000, statementTimeoutMs: 2_000 };

let server: PostgresServer;
const opened: Storage[] = [];

beforeAll(async () => {
  server = await startPostgres(["-c", "fsync=off"]);
});

afterEach(async () => {
  for (const storage of opened.splice(0)) await storage.close();
});

afterAll(() => server.stop());

async function open(url: string, ownLimits = limits): Promise<Storage> {
  const storage = await openPostgres(url, { isServing: true, limits: ownLimits });
  opened.push(storage);
  return storage;
}

/** How a promise ended: `done`, or the code of its error. */
function ending(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "done",
    (error) => error.code ?? String(error),
  );
}

function tryAll(storage: Storage): Promise<string[]> {
  const attempts = [storage.list("home", undefined, 1), storage.apply([create()]), storage.ping()];
  return Promise.all(attempts.map(ending));
}

async function untilAllWork(storage: Storage): Promise<void> {
  await waitFor(async () =>
    (await tryAll(storage)).every((each) => each === "done") ? true : undefined,
  );
}

const allUnavailable = ["unavailable", "unavailable", "unavailable"];
const allDone = ["done", "done", "done"];

describe("a server that is well", () => {
  let database: TestDatabase;
  let pool: PrimaryPool;

  beforeEach(async () => {
    database = await makeDatabase(server);
    pool = new PrimaryPool(parseUrl(database.url), { ...limits, poolSize: 5 });
    await pool.settle();
  });

  afterEach(() => pool.close());

  async function countConnections(): Promise<number> {
    const rows = await database.query(
      `SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'plantstore'`,
    );
    return rows.length;
  }

  test("is not given up for work that had too little time left", async () => {
    // For its connection, and then for the response.
    for (const timeMs of [1, 0]) {
      const dueAtMs = performance.now() + timeMs;
      const late = pool.use((client) => client.query("SELECT pg_sleep(5)"), { dueAtMs });
      expect(await ending(late)).toContain("No response in time");
      expect(await ending(pool.ping())).toBe("done");
    }
  });

  test("is not left with statements whose answer nobody waits for", async () => {
    const work = pool.use(
      async (client) => {
        await client.query("SET statement_timeout = 0; SET client_connection_check_interval = 10");
        await client.query("SELECT pg_sleep(600)");
      },
      { dueAtMs: performance.now() + 200 },
    );
    expect(await ending(work)).toContain("No response in time");
    await waitFor(async () => ((await countConnections()) === 0 ? true : undefined));
  });
});

/** What becomes of connections that a relay carries. */
type Fate = "passed" | "lost" | "silent";

interface Relay {
  readonly port: number;
  /** What becomes of the next connection when its check is answered. */
  next: Fate;
  /** Cuts all connections; from now on new ones are passed, cut or left without a response. */
  turn(fate: Fate): void;
}

/** Stands between a storage and its server. */
async function openRelay(fate: Fate = "passed"): Promise<Relay> {
  const clients = new Set<Socket>();
  let current = fate;
  const listener = createServer((client) => {
    clients.add(client);
    client.on("error", () => {});
    if (current === "lost") client.destroy();
    if (current === "passed") carry(client, relay);
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  listener.unref();
  const relay: Relay = {
    port: (listener.address() as AddressInfo).port,
    next: "passed",
    turn(fate) {
      current = fate;
      for (const client of clients) client.destroy();
      clients.clear();
    },
  };
  return relay;
}

function carry(client: Socket, relay: Relay): void {
  const upstream = connect(server.port, "127.0.0.1");
  client.on("data", (bytes) => upstream.write(bytes));
  upstream.on("data", (bytes: Buffer) => {
    const isCheck = bytes.includes("transaction_read_only");
    if (relay.next === "passed" || !isCheck) return void client.write(bytes);
    const isSilent = relay.next === "silent";
    relay.next = "passed";
    if (isSilent) return;
    // Together, so that both are read before the first of them is acted upon.
    client.end(Buffer.concat([bytes, shutdownMessage]));
    upstream.destroy();
  });
  upstream.on("error", () => {});
  client.on("close", () => upstream.destroy());
  upstream.on("close", () => client.destroy());
}

const shutdownText = "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
const shutdownMessage = Buffer.from(
  `E\0\0\0${String.fromCharCode(4 + shutdownText.length)}${shutdownText}`,
);

function urlThrough(database: TestDatabase, ...relays: Relay[]): string {
  const hosts = relays.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return database.url.replace(/@[^/]+/, `@${hosts}`);
}

describe("a connection that fails while it is made", () => {
  test.each(["lost", "silent"] as const)("is replaced, and nobody notices (%s)", async (fate) => {
    const relay = await openRelay();
    const storage = await open(urlThrough(await makeDatabase(server), relay), {
      ...limits,
      poolSize: 1,
      statementTimeoutMs: 5_000,
    });
    const loseConnections = async () => {
      relay.turn("passed");
      await Bun.sleep(50);
      relay.next = fate;
    };
    await loseConnections();
    expect(await storage.list("home", undefined, 1)).toEqual([]);
    expect(relay.next).toBe("passed");
    await loseConnections();
    expect(await storage.apply([create({ id: 1n }), create()])).toHaveLength(2);
    expect(relay.next).toBe("passed");
    expect(await storage.list("home", undefined, 9)).toHaveLength(2);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("a host that stays silent", () => {
  test("does not hold up the search on the others", async () => {
    const first = await openRelay();
    const second = await openRelay("lost");
    const silent = await openRelay("silent");
    const url = urlThrough(await makeDatabase(server), first, second, silent);
    // Far longer than the others take.
    const patient = { ...limits, connectTimeoutMs: 20_000, statementTimeoutMs: 10_000 };
    const storage = await open(url, patient);
    first.turn("lost");
    const found = ending(storage.countTokenChanges());
    // By then the second has refused.
    await Bun.sleep(300);
    second.turn("passed");
    expect(await found).toBe("done");
  });
});

describe("a server that is killed", () => {
  test("leaves all of it unavailable, and never ends the process", async () => {
    const database = await makeDatabase(server);
    const storage = await open(database.url);
    expect(await tryAll(storage)).toEqual(allDone);
    process.kill(server.pid, "SIGQUIT");
    await waitFor(async () => (isAlive(server.pid) ? undefined : true));
    expect(await tryAll(storage)).toEqual(allUnavailable);
    expect(await tryAll(storage)).toEqual(allUnavailable);
    const options = { isServing: true, share: true, limits };
    const joined = await openPostgres(database.url, options);
    opened.push(joined);
    expect(await tryAll(joined)).toEqual(allUnavailable);
    await server.startAgain();
    await untilAllWork(storage);
    await untilAllWork(joined);
  });
});
