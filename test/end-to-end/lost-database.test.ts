/** A database that is lost: what responses say, and what each thread logs of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { renameSync, rmSync, truncateSync } from "node:fs";
import { FaultyProxy } from "../../testing/faulty-proxy.ts";
import { makeDatabase, type TestDatabase } from "../../testing/postgres-server.ts";
import { callAnew, serveHere, waitFor, waitForThreads } from "../../testing/running-service.ts";
import { touch } from "../../testing/temporary-folder.ts";

const fern = '{"name":"Fern"}';

type Service = Awaited<ReturnType<typeof serveHere>>;

describe("when PostgreSQL goes away and comes back, a service with two threads", () => {
  let database: TestDatabase;
  let proxy: FaultyProxy;
  let service: Service;
  let databaseUrl: string;

  beforeAll(async () => {
    database = await makeDatabase();
    proxy = await FaultyProxy.open(database.url);
    databaseUrl = `postgres://postgres@127.0.0.1:${proxy.port}/${database.name}`;
    service = await serveHere(
      { threads: "2", database: proxy.url },
      { checkDatabaseMs: 50, mayRefuse: true },
    );
    await waitForThreads(service, 2);
    await callAll();

    proxy.isUp = false;
    proxy.cut();
    await waitFor(async () => {
      await callAll();
      return service.readLog("database lost").length >= 2 || undefined;
    });
    proxy.isUp = true;
    await waitFor(() => service.readLog("database back").length >= 2 || undefined);
    await callAll();
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    proxy.close();
    await database.drop();
  });

  /** Reads, writes and probes, over connections that either thread may get. */
  async function callAll(): Promise<void> {
    const responses: Promise<Response>[] = [];
    for (let count = 0; count < 8; count++) {
      responses.push(callAnew(service, "GET /plants?limit=2"));
      responses.push(callAnew(service, "POST /plants", { body: fern }));
      responses.push(callAnew(service, "GET /readyz"));
    }
    await Promise.all(responses);
  }

  test("sends a 503 meanwhile", () => {
    const statuses = service.readLog("request").map(({ status }) => status);

    expect(statuses).toContain(503);
  });

  test("logs once for each thread that it was lost, and why", () => {
    const lines = service.readLog("database lost");

    expect(lines).toHaveLength(2);
    for (const line of lines) {
      expect(line).toMatchObject({
        level: "error",
        database: databaseUrl,
        reason: expect.stringMatching(/ECONNRESET|terminat/),
      });
    }
  });

  test("logs once for each thread that it is back, and after how long", () => {
    const lines = service.readLog("database back");

    expect(lines).toHaveLength(2);
    for (const line of lines) {
      expect(line).toMatchObject({ level: "info", database: databaseUrl });
      expect(line.lostSeconds).toBeGreaterThan(0);
    }
  });
});

describe.each([
  { damage: "was replaced", change: (path: string) => renameSync(touch(`${path}.other`), path) },
  { damage: "lost its WAL", change: (path: string) => rmSync(`${path}-wal`) },
  { damage: "was emptied", change: (path: string) => truncateSync(path) },
])("when its SQLite file $damage, a service", ({ change }) => {
  let service: Service;
  let refused: Response;

  const createPlant = () => service.call("POST /plants", { body: fern });

  beforeAll(async () => {
    service = await serveHere({}, { mayRefuse: true });
    expect((await createPlant()).status).toBe(201);
    change(service.database);
    // Of writes that follow each other closely, not each looks at the file.
    refused = await waitFor(async () => {
      const response = await createPlant();
      return response.status === 503 ? response : undefined;
    });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  test("refuses writes, and says why", async () => {
    expect(await refused.json()).toMatchObject({
      detail: "The database file was removed, replaced or emptied.",
    });
  });

  test("isn't ready, and logs the failed probe", async () => {
    expect((await service.call("GET /readyz")).status).toBe(503);

    const line = service.readLog("request").at(-1);
    expect(line).toMatchObject({ level: "warn", route: "/readyz", status: 503 });
  });

  test("is still healthy", async () => {
    expect((await service.call("GET /healthz")).status).toBe(200);
  });

  test("lists plants or sends a 503", async () => {
    expect((await service.call("GET /plants")).status).toBeOneOf([200, 503]);
  });
});
