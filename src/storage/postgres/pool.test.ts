/** Servers that go away, freeze, or stop to take writes: found again without a restart. */
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
  serverPassword,
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

let servers: [PostgresServer, PostgresServer];
const opened: Storage[] = [];

beforeAll(async () => {
  const flags = ["-c", "fsync=off"];
  servers = await Promise.all([startPostgres(flags), startPostgres(flags)]);
});

afterEach(async () => {
  for (const storage of opened.splice(0)) await storage.close();
});

afterAll(() => Promise.all(servers.map((server) => server.stop())));

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

describe("a server that freezes", () => {
  test("is given up in time, and used again when it goes on", async () => {
    const [server] = servers;
    const database = await makeDatabase(server);
    const storage = await open(database.url);
    // More than there are connections, so that some wait for one.
    const readMany = () =>
      Promise.all(Array.from({ length: 6 }, () => ending(storage.list("home", undefined, 1))));
    expect(await tryAll(storage)).toEqual(allDone);
    const rows = await database.query(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'plantstore'",
    );
    const processes = [server.pid, ...rows.map(({ pid }) => Number(pid))];
    for (const pid of processes) process.kill(pid, "SIGSTOP");
    try {
      expect(await tryAll(storage)).toEqual(allUnavailable);
      expect(new Set(await readMany())).toEqual(new Set(["unavailable"]));
    } finally {
      for (const pid of processes) process.kill(pid, "SIGCONT");
    }
    await untilAllWork(storage);
    expect(new Set(await readMany())).toEqual(new Set(["done"]));
  });
});

describe("a server that is well", () => {
  let database: TestDatabase;
  let pool: PrimaryPool;

  beforeEach(async () => {
    database = await makeDatabase(servers[0]);
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

  test("is asked once by all who want to know at the same time whether it answers", async () => {
    const pings = Array.from({ length: 20 }, () => pool.ping());
    await Promise.all(pings);
    // That which found the server may not have ended yet.
    expect(await countConnections()).toBeLessThanOrEqual(2);
    expect(await ending(pool.ping())).toBe("done");
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
  const server = createServer((client) => {
    clients.add(client);
    client.on("error", () => {});
    if (current === "lost") client.destroy();
    if (current === "passed") carry(client, relay);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const relay: Relay = {
    port: (server.address() as AddressInfo).port,
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
  const server = connect(servers[0].port, "127.0.0.1");
  client.on("data", (bytes) => server.write(bytes));
  server.on("data", (bytes: Buffer) => {
    const isCheck = bytes.includes("transaction_read_only");
    if (relay.next === "passed" || !isCheck) return void client.write(bytes);
    const isSilent = relay.next === "silent";
    relay.next = "passed";
    if (isSilent) return;
    // Together, so that both are read before the first of them is acted upon.
    client.end(Buffer.concat([bytes, shutdownMessage]));
    server.destroy();
  });
  server.on("error", () => {});
  client.on("close", () => server.destroy());
  server.on("close", () => client.destroy());
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
    const storage = await open(urlThrough(await makeDatabase(servers[0]), relay), {
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

  test.each(["lost", "silent"] as const)(
    "has another host found, though somebody always waits for the only connection (%s)",
    async (fate) => {
      const [first, second] = [await openRelay(), await openRelay("lost")];
      const url = urlThrough(await makeDatabase(servers[0]), first, second);
      const storage = await open(url, { ...limits, poolSize: 1 });
      second.turn("passed");
      first.turn(fate);
      const isOver = AbortSignal.timeout(60_000);
      let isFound = false;
      const ask = async () => {
        while (!isFound && !isOver.aborted) {
          const found = await storage.countTokenChanges().catch(() => undefined);
          isFound ||= found !== undefined;
        }
      };
      await Promise.all(Array.from({ length: 10 }, ask));
      expect(isFound).toBe(true);
    },
  );
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("of several servers", () => {
  test("the one that takes writes is used, and the other one once it does instead", async () => {
    const [first, second] = await Promise.all(
      servers.map((server) => makeDatabase(server, "plants")),
    );
    const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
    await refuseWrites(first as TestDatabase, true);
    const storage = await open(
      `postgres://postgres:${serverPassword}@${hosts}/plants?target_session_attrs=read-write`,
    );
    expect(await tryAll(storage)).toEqual(allDone);
    expect(await second?.query("SELECT count(*) FROM plants")).toEqual([{ count: "1" }]);

    await refuseWrites(second as TestDatabase, true);
    expect(await tryAll(storage)).toEqual(allUnavailable);
    await refuseWrites(first as TestDatabase, false);
    await openPostgres(first?.url ?? "", { isServing: false }).then((each) => each.close());
    await untilAllWork(storage);
    expect(await second?.query("SELECT count(*) FROM plants")).toEqual([{ count: "1" }]);
  });
});

describe("a host that stays silent", () => {
  test("does not hold up the search on the others", async () => {
    const first = await openRelay();
    const second = await openRelay("lost");
    const silent = await openRelay("silent");
    const url = urlThrough(await makeDatabase(servers[0]), first, second, silent);
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
    const [server] = servers;
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

/** As a standby does, for every connection from now on. */
async function refuseWrites(database: TestDatabase, isRefusing: boolean): Promise<void> {
  const setting = `default_transaction_read_only = ${isRefusing ? "on" : "off"}`;
  await database.query(
    `BEGIN READ WRITE; ALTER DATABASE ${database.name} SET ${setting}; COMMIT;
     SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
}
