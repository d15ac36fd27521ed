/** A storage whose writes hang: what /readyz says, and how long a stop takes. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { type RunningService, startService, waitFor } from "../end-to-end/running-service.ts";
import { makeDatabase } from "../postgres-server.ts";

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
