/** A database that is lost: what responses say, and what each thread logs of it. */
import { expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, truncateSync } from "node:fs";
import { dirname, join } from "node:path";
import { FaultyProxy } from "../faulty-proxy.ts";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder, touch } from "../temporary-folder.ts";
import { callAnew, serveHere, waitFor, waitForThreads } from "./running-service.ts";

const threads = 2;

type Service = Awaited<ReturnType<typeof serveHere>>;

async function start(settings: Record<string, string> = {}): Promise<Service> {
  const all = { threads: String(threads), ...settings };
  const service = await serveHere(all, { checkDatabaseMs: 50 });
  await waitForThreads(service, threads);
  return service;
}

/** Reads, writes and probes, over connections that either thread may get. */
async function callAll(service: Service): Promise<void> {
  const body = '{"name":"Fern"}';
  const calls = Array.from({ length: 8 }, () => [
    callAnew(service, "GET /plants?limit=2"),
    callAnew(service, "POST /plants", { body }),
    callAnew(service, "GET /readyz"),
  ]);
  await Promise.all(calls.flat());
}

/** Returns what was logged of the loss. */
async function checkLog(service: Service, reason: RegExp, bringBack: () => unknown) {
  await waitFor(async () => {
    await callAll(service);
    return service.readLog("database lost")[threads - 1];
  });
  const [lost] = service.readLog("database lost");
  await bringBack();
  const back = await waitFor(() => service.readLog("database back")[threads - 1]);
  await callAll(service);
  expect(service.readLog("request").some(({ status }) => status === 503)).toBe(true);
  expect(lost).toMatchObject({ level: "error", reason: expect.stringMatching(reason) });
  expect(back).toMatchObject({ level: "info", database: lost.database });
  expect(back.lostSeconds).toBeGreaterThan(0);
  for (const event of ["database lost", "database back"]) {
    expect(service.readLog(event)).toHaveLength(threads);
  }
  return lost;
}

test("a PostgreSQL server that goes away and comes back is two lines a thread, with host and reason", async () => {
  await using database = await makeDatabase();
  const proxy = await FaultyProxy.open(database.url);
  await using service = await start({ database: proxy.url });
  await callAll(service);
  proxy.isUp = false;
  proxy.cut();
  const lost = await checkLog(service, /ECONNRESET|terminat/, () => {
    proxy.isUp = true;
  });
  expect(lost.database).toBe(`postgres://postgres@127.0.0.1:${proxy.port}/${database.name}`);
  proxy.close();
});

test("a SQLite file that is moved away and back is two lines a thread, with path and reason", async () => {
  await using service = await start();
  const { database } = service;
  await callAll(service);
  renameSync(database, `${database}.away`);
  const lost = await checkLog(service, /removed, replaced or emptied/, () =>
    renameSync(`${database}.away`, database),
  );
  expect(lost.database).toBe(database);
});

test.each([
  ["removed", (path: string) => rmSync(path)],
  ["moved away with its folder", (path: string) => renameSync(dirname(path), `${dirname(path)}2`)],
  ["replaced", (path: string) => renameSync(touch(`${path}.other`), path)],
  ["without its WAL", (path: string) => rmSync(`${path}-wal`)],
  ["emptied", (path: string) => truncateSync(path)],
])("a SQLite file that is %s takes no writes, and responses say so", async (_, change) => {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "data", "plants.db");
  mkdirSync(dirname(database));
  await using service = await serveHere({ database });
  const create = () => service.call("POST /plants", { body: '{"name":"Fern"}' });
  expect((await create()).status).toBe(201);
  change(database);
  const created = await create();
  expect([created.status, await created.json()]).toMatchObject([
    503,
    { detail: "The database file was removed, replaced or emptied." },
  ]);
  expect((await service.call("GET /readyz")).status).toBe(503);
  expect((await service.call("GET /healthz")).status).toBe(200);
  expect((await service.call("GET /plants")).status).toBeOneOf([200, 503]);
});
