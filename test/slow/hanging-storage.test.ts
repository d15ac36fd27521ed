/** A storage whose writes hang: what /readyz says, and how long a stop takes. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { type RunningService, startService, waitFor } from "../end-to-end/running-service.ts";
import { makeDatabase, type PostgresServer, startPostgres } from "../postgres-server.ts";
import { signalAll } from "../processes.ts";

setDefaultTimeout(120_000);

/** Its processes are paused, which the tests on the shared one would notice. */
let pausedServer: PostgresServer;

beforeAll(async () => {
  pausedServer = await startPostgres();
});

afterAll(() => pausedServer.stop());

/** Holds up every write until the result is called; reads go on. */
type HoldUp = (service: RunningService) => Promise<() => Promise<void>>;

/** Like a command that writes for long beside the service, or a disk that hangs. */
const lockFile: HoldUp = async (service) => {
  const database = new Database(service.database, { create: false, readwrite: true });
  database.run("BEGIN IMMEDIATE");
  return async () => database.close();
};

/** Like a migration or a careless session. */
const lockTables: HoldUp = async (service) => {
  const client = new Client(service.database);
  await client.connect();
  await client.query("BEGIN; LOCK TABLE plants, gardens IN SHARE MODE");
  return () => client.end();
};

const pauseServer: HoldUp = async () => {
  signalAll(pausedServer, "SIGSTOP");
  return async () => signalAll(pausedServer, "SIGCONT");
};

type Engine = "SQLite" | "PostgreSQL" | "paused PostgreSQL";

const cases: readonly [what: string, engine: Engine, holdUp: HoldUp][] = [
  ["a SQLite file that another process has locked", "SQLite", lockFile],
  ["PostgreSQL tables that somebody has locked", "PostgreSQL", lockTables],
  ["a PostgreSQL server that hangs", "paused PostgreSQL", pauseServer],
];

async function start(engine: Engine, threads: number): Promise<RunningService> {
  const own = engine === "PostgreSQL" ? undefined : pausedServer;
  const database = engine === "SQLite" ? undefined : (await makeDatabase(own)).url;
  const service = await startService({
    args: ["--threads", String(threads)],
    ...(database && { database }),
  });
  expect((await create(service)).status).toBe(201);
  return service;
}

/** On a connection of its own, which either thread may get. */
const headers = { connection: "close" };
const create = (service: RunningService) =>
  service.call("POST /plants", { body: '{"name":"Fern"}', headers });
const isReady = async (service: RunningService) =>
  (await service.call("GET /readyz", { headers })).status === 200;

async function checkReadiness(engine: Engine, holdUp: HoldUp): Promise<void> {
  await using service = await start(engine, 1);
  const letGo = await holdUp(service);
  try {
    // Not ready even after the commit has failed and nobody else writes. A busy service may refuse
    // a create before it reaches the storage.
    await waitFor(async () => {
      expect((await create(service)).status).toBe(503);
      return (await isReady(service)) ? undefined : true;
    });
    const checks = Array.from({ length: 8 }, () => isReady(service));
    expect(new Set(await Promise.all(checks))).toEqual(new Set([false]));
  } finally {
    await letGo();
  }
  await waitFor(async () => (await isReady(service)) || undefined);
  expect((await create(service)).status).toBe(201);
}

async function checkStop(engine: Engine, holdUp: HoldUp): Promise<void> {
  await using service = await start(engine, 2);
  const letGo = await holdUp(service);
  try {
    const creating: Promise<unknown>[] = [];
    await waitFor(async () => {
      creating.push(create(service).catch(() => {}));
      return (await isReady(service)) ? undefined : true;
    });
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
    await Promise.all(creating);
  } finally {
    await letGo();
  }
}

// Side by side, because they mostly wait.
describe.concurrent("it isn't ready until a write can be committed again, and a stop ends within 10 s", () => {
  test.each(cases)("with %s", async (_, engine, holdUp) => {
    await checkReadiness(engine, holdUp);
    await checkStop(engine, holdUp);
  });
});
