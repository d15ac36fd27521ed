/** A storage that hangs: what goes on meanwhile, what /readyz says, and how long a stop takes. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase } from "../../testing/postgres-server.ts";
import { type RunningService, startService, waitFor } from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";

setDefaultTimeout(120_000);

/** On a connection of its own, which either thread may get. */
const headers = { connection: "close" };

async function create(service: RunningService): Promise<number> {
  return (await service.call("POST /plants", { body: '{"name":"Fern"}', headers })).status;
}

async function isReady(service: RunningService): Promise<boolean> {
  return (await service.call("GET /readyz", { headers })).status === 200;
}

/** Another process locks the file, as a command that writes for long does, or the disk hangs. */
async function lockFile(path: string) {
  const database = new Database(path, { create: false, readwrite: true });
  database.run("BEGIN IMMEDIATE");
  return { unlock: async () => database.close() };
}

/** A migration or a careless session locks the tables. Reads go on. */
async function lockTables(url: string) {
  const client = new Client(url);
  await client.connect();
  await client.query("BEGIN; LOCK TABLE plants, gardens IN SHARE MODE");
  return { unlock: () => client.end() };
}

async function startOnSqlite() {
  return { service: await startService({ args: ["--threads", "1"] }), drop: async () => {} };
}

async function startOnPostgres() {
  const { url, drop } = await makeDatabase();
  return { service: await startService({ args: ["--threads", "1"], database: url }), drop };
}

const storages = [
  { locked: "a SQLite file", start: startOnSqlite, lock: lockFile },
  { locked: "tables of PostgreSQL", start: startOnPostgres, lock: lockTables },
];

// Side by side, because they mostly wait.
describe.concurrent.each(storages)("while another process locks $locked", ({ start, lock }) => {
  test("the service isn't ready, until it can commit writes again", async () => {
    await using stack = new AsyncDisposableStack();
    const { service, drop } = await start();
    stack.defer(drop);
    stack.use(service);
    expect(await create(service)).toBe(201);

    const { unlock } = await lock(service.database);
    // A busy service may refuse a create before it reaches the storage.
    await waitFor(async () => {
      expect(await create(service)).toBe(503);
      return (await isReady(service)) ? undefined : true;
    });
    // It stays like that after the commit has failed, although nothing else writes.
    const checks = Array.from({ length: 8 }, () => isReady(service));
    expect(await Promise.all(checks)).toEqual(Array(8).fill(false));

    await unlock();
    await waitFor(async () => (await isReady(service)) || undefined);
    expect(await create(service)).toBe(201);
  });

  test("SIGTERM stops the service, with exit code 0", async () => {
    await using stack = new AsyncDisposableStack();
    const { service, drop } = await start();
    stack.defer(drop);
    stack.use(service);
    expect(await create(service)).toBe(201);
    const { unlock } = await lock(service.database);
    const creating: Promise<unknown>[] = [];
    await waitFor(async () => {
      creating.push(create(service).catch(() => {}));
      return (await isReady(service)) ? undefined : true;
    });

    service.signal("SIGTERM");

    expect(await service.exited).toBe(0);
    await Promise.all(creating);
    await unlock();
  });
});

/** From now on, the system takes a second each time that it says what one of these files is like. */
async function slowDownStats({ pid, database }: RunningService) {
  const files = [database, `${database}-wal`, `${database}-shm`].flatMap((file) => ["-P", file]);
  const delay = ["-e", "trace=statx", "-e", "inject=statx:delay_enter=1000000"];
  const tracer = Bun.spawn(["strace", "-f", "-p", String(pid), ...files, ...delay], {
    stderr: "pipe",
  });
  const reader = tracer.stderr.getReader();
  const { value } = await reader.read();
  expect(new TextDecoder().decode(value)).toContain("attached");
  return {
    [Symbol.dispose]() {
      tracer.kill();
    },
  };
}

function isTraceable(): boolean {
  if (Bun.which("strace") === null) return false;
  const target = Bun.spawn(["sleep", "5"]);
  const tried = Bun.spawnSync(["timeout", "1", "strace", "-p", String(target.pid)]);
  target.kill();
  return tried.stderr.toString().includes("attached");
}

test.skipIf(skipsUnless(isTraceable(), "needs strace, and the right to attach it"))(
  "a disk that is slow to describe its files delays writes and /readyz, but no reads",
  async () => {
    await using service = await startService({ args: ["--threads", "1"] });
    expect(await create(service)).toBe(201);

    {
      using _slow = await slowDownStats(service);
      let isCreated = false;
      const creating = create(service).finally(() => {
        isCreated = true;
      });
      for (let limit = 1; limit <= 20; limit++) {
        expect((await service.call(`GET /plants?limit=${limit}`, { headers })).status).toBe(200);
      }
      expect(isCreated).toBe(false);
      expect(await isReady(service)).toBe(false);
      expect(await creating).toBe(201);
    }

    await waitFor(async () => (await isReady(service)) || undefined);
  },
);
