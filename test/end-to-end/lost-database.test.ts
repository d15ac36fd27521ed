/** A database that is lost: what responses say, and what each thread logs of it. */
import { expect, test } from "bun:test";
import { renameSync, rmSync, truncateSync } from "node:fs";
import { FaultyProxy } from "../../testing/faulty-proxy.ts";
import { makeDatabase } from "../../testing/postgres-server.ts";
import { callAnew, serveHere, waitFor, waitForThreads } from "../../testing/running-service.ts";
import { touch } from "../../testing/temporary-folder.ts";

const fern = '{"name":"Fern"}';

test("a PostgreSQL server that goes away and comes back is two lines a thread, with host and reason", async () => {
  const threads = 2;
  await using database = await makeDatabase();
  const proxy = await FaultyProxy.open(database.url);
  const settings = { threads: String(threads), database: proxy.url };
  await using service = await serveHere(settings, { checkDatabaseMs: 50, mayRefuse: true });
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
  proxy.isUp = false;
  proxy.cut();
  await waitFor(async () => {
    await callAll();
    return service.readLog("database lost")[threads - 1];
  });
  proxy.isUp = true;
  await waitFor(() => service.readLog("database back")[threads - 1]);
  await callAll();
  expect(service.readLog("request").some(({ status }) => status === 503)).toBe(true);
  const address = `postgres://postgres@127.0.0.1:${proxy.port}/${database.name}`;
  const reason = expect.stringMatching(/ECONNRESET|terminat/);
  const lost = service.readLog("database lost");
  expect(lost).toHaveLength(threads);
  expect(lost[0]).toMatchObject({ level: "error", database: address, reason });
  const back = service.readLog("database back");
  expect(back).toHaveLength(threads);
  expect(back[0]).toMatchObject({ level: "info", database: address });
  expect(back[0].lostSeconds).toBeGreaterThan(0);
  proxy.close();
});

test.each([
  ["replaced", (path: string) => renameSync(touch(`${path}.other`), path)],
  ["without its WAL", (path: string) => rmSync(`${path}-wal`)],
  ["emptied", (path: string) => truncateSync(path)],
])("a SQLite file that is %s takes no writes, and responses say so", async (_, change) => {
  await using service = await serveHere({}, { mayRefuse: true });
  const create = () => service.call("POST /plants", { body: fern });
  expect((await create()).status).toBe(201);
  change(service.database);
  // Writes that come soon after one another don't look at the file each time.
  const refused = await waitFor(async () => {
    const response = await create();
    return response.status === 503 ? response : undefined;
  });
  expect(await refused.json()).toMatchObject({
    detail: "The database file was removed, replaced or emptied.",
  });
  expect((await service.call("GET /readyz")).status).toBe(503);
  // A probe is logged only if it fails.
  const failed = { level: "warn", route: "/readyz", status: 503 };
  expect(service.readLog("request").at(-1)).toMatchObject(failed);
  expect((await service.call("GET /healthz")).status).toBe(200);
  expect((await service.call("GET /plants")).status).toBeOneOf([200, 503]);
});
