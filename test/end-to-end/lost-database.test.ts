/** A database that is lost: what responses say, and what each thread logs of it. */
import { expect, test } from "bun:test";
import { renameSync, rmSync, truncateSync } from "node:fs";
import { FaultyProxy } from "../faulty-proxy.ts";
import { makeDatabase } from "../postgres-server.ts";
import { touch } from "../temporary-folder.ts";
import { callAnew, serveHere, waitFor, waitForThreads } from "./running-service.ts";

const threads = 2;
const fern = '{"name":"Fern"}';

/** Each thread logs the loss and the return, with the address and the reason, and nothing else. */
async function checkLog(
  settings: Record<string, string>,
  lose: (database: string) => void,
  bringBack: (database: string) => void,
  reason: RegExp,
): Promise<string> {
  const all = { threads: String(threads), ...settings };
  await using service = await serveHere(all, { checkDatabaseMs: 50 });
  await waitForThreads(service, threads);
  /** Reads, writes and probes, over connections that either thread may get. */
  const callAll = async () => {
    const calls = Array.from({ length: 8 }, () => [
      callAnew(service, "GET /plants?limit=2"),
      callAnew(service, "POST /plants", { body: fern }),
      callAnew(service, "GET /readyz"),
    ]);
    await Promise.all(calls.flat());
  };
  await callAll();
  lose(service.database);
  await waitFor(async () => {
    await callAll();
    return service.readLog("database lost")[threads - 1];
  });
  const [lost] = service.readLog("database lost");
  bringBack(service.database);
  const back = await waitFor(() => service.readLog("database back")[threads - 1]);
  await callAll();
  expect(service.readLog("request").some(({ status }) => status === 503)).toBe(true);
  expect(lost).toMatchObject({ level: "error", reason: expect.stringMatching(reason) });
  expect(back).toMatchObject({ level: "info", database: lost.database });
  expect(back.lostSeconds).toBeGreaterThan(0);
  for (const event of ["database lost", "database back"]) {
    expect(service.readLog(event)).toHaveLength(threads);
  }
  return lost.database;
}

test("a PostgreSQL server that goes away and comes back is two lines a thread, with host and reason", async () => {
  await using database = await makeDatabase();
  const proxy = await FaultyProxy.open(database.url);
  const goAway = () => {
    proxy.isUp = false;
    proxy.cut();
  };
  const comeBack = () => {
    proxy.isUp = true;
  };
  const settings = { database: proxy.url };
  const shown = await checkLog(settings, goAway, comeBack, /ECONNRESET|terminat/);
  expect(shown).toBe(`postgres://postgres@127.0.0.1:${proxy.port}/${database.name}`);
  proxy.close();
});

test("a SQLite file that is moved away and back is two lines a thread, with path and reason", async () => {
  const shown = await checkLog(
    {},
    (path) => renameSync(path, `${path}.away`),
    (path) => renameSync(`${path}.away`, path),
    /removed, replaced or emptied/,
  );
  expect(shown).toEndWith("plants.db");
});

test.each([
  ["replaced", (path: string) => renameSync(touch(`${path}.other`), path)],
  ["without its WAL", (path: string) => rmSync(`${path}-wal`)],
  ["emptied", (path: string) => truncateSync(path)],
])("a SQLite file that is %s takes no writes, and responses say so", async (_, change) => {
  await using service = await serveHere();
  const create = () => service.call("POST /plants", { body: fern });
  expect((await create()).status).toBe(201);
  change(service.database);
  const created = await create();
  expect([created.status, await created.json()]).toMatchObject([
    503,
    { detail: "The database file was removed, replaced or emptied." },
  ]);
  expect((await service.call("GET /readyz")).status).toBe(503);
  // A probe is logged only if it fails.
  const failed = { level: "warn", route: "/readyz", status: 503 };
  expect(service.readLog("request").at(-1)).toMatchObject(failed);
  expect((await service.call("GET /healthz")).status).toBe(200);
  expect((await service.call("GET /plants")).status).toBeOneOf([200, 503]);
});
