/** A storage that hangs: what goes on meanwhile, what /readyz says, and how long a stop takes. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase } from "../../testing/postgres-server.ts";
import { type RunningService, startService, waitFor } from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";

setDefaultTimeout(120_000);

/** Holds up every write until the result is called; reads go on. */
type HoldUp = (database: string) => Promise<() => Promise<void>>;

/** Like a command that writes for long beside the service, or a disk that hangs. */
const lockFile: HoldUp = async (path) => {
  const database = new Database(path, { create: false, readwrite: true });
  database.run("BEGIN IMMEDIATE");
  return async () => database.close();
};

/** Like a migration or a careless session. */
const lockTables: HoldUp = async (url) => {
  const client = new Client(url);
  await client.connect();
  await client.query("BEGIN; LOCK TABLE plants, gardens IN SHARE MODE");
  return () => client.end();
};

/** On a connection of its own, which either thread may get. */
const headers = { connection: "close" };
const create = (service: RunningService) =>
  service.call("POST /plants", { body: '{"name":"Fern"}', headers });
const isReady = async (service: RunningService) =>
  (await service.call("GET /readyz", { headers })).status === 200;

// Side by side, because they mostly wait.
describe.concurrent("it isn't ready until a write can be committed again, and a stop ends within 10 s", () => {
  test.each([
    ["a SQLite file that another process has locked", lockFile],
    ["PostgreSQL tables that somebody has locked", lockTables],
  ])("with %s", async (_, holdUp) => {
    await using own = holdUp === lockTables ? await makeDatabase() : undefined;
    const options = own && { database: own.url };
    await using service = await startService({ args: ["--threads", "1"], ...options });
    expect((await create(service)).status).toBe(201);
    const letGo = await holdUp(service.database);
    // Not ready even after the commit has failed and nobody else writes. A busy service may refuse
    // a create before it reaches the storage.
    await waitFor(async () => {
      expect((await create(service)).status).toBe(503);
      return (await isReady(service)) ? undefined : true;
    });
    const checks = Array.from({ length: 8 }, () => isReady(service));
    expect(new Set(await Promise.all(checks))).toEqual(new Set([false]));
    await letGo();
    await waitFor(async () => (await isReady(service)) || undefined);
    expect((await create(service)).status).toBe(201);

    const letGoAgain = await holdUp(service.database);
    const creating: Promise<unknown>[] = [];
    await waitFor(async () => {
      creating.push(create(service).catch(() => {}));
      return (await isReady(service)) ? undefined : true;
    });
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
    await Promise.all(creating);
    await letGoAgain();
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
  "a disk that is slow to say what its files are like delays writes and /readyz, but no reads",
  async () => {
    await using service = await startService({ args: ["--threads", "1"] });
    expect((await create(service)).status).toBe(201);
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
      expect((await creating).status).toBe(201);
    }
    await waitFor(async () => (await isReady(service)) || undefined);
  },
);
