/** What each thread logs about a lost database: one line when it is lost, one when it is back. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { renameSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { makeDatabase, sharedPostgres } from "../postgres-server.ts";
import { pickPorts } from "../processes.ts";
import { callAnew, serveHere, waitFor, waitForThreads } from "./running-service.ts";

setDefaultTimeout(120_000);

const threads = 2;

type Service = Awaited<ReturnType<typeof serveHere>>;

async function start(settings: Record<string, string> = {}): Promise<Service> {
  const service = await serveHere({ threads: String(threads), ...settings });
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
  await callAll(service);
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

/** Stands between the service and its server, and goes away and comes back as a server does. */
async function openRelay(port: number) {
  const { port: serverPort } = await sharedPostgres();
  const sockets = new Set<Socket>();
  const relay = createServer((client) => {
    const upstream = connect(serverPort, "127.0.0.1");
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => other.destroy());
      socket.pipe(other);
    }
  });
  const open = () => new Promise<void>((resolve) => relay.listen(port, "127.0.0.1", resolve));
  await open();
  return {
    open,
    close() {
      relay.close();
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
  };
}

test("a PostgreSQL server that goes away and comes back is two lines a thread, with host and reason", async () => {
  const [port = 0] = pickPorts(1);
  const relay = await openRelay(port);
  const database = await makeDatabase();
  const url = database.url.replace(/@[^/]+/, `@127.0.0.1:${port}`);
  {
    await using service = await start({ database: url });
    await callAll(service);
    relay.close();
    const lost = await checkLog(service, /ECONNREFUSED|terminat/, relay.open);
    expect(lost.database).toBe(`postgres://postgres@127.0.0.1:${port}/${database.name}`);
  }
  relay.close();
  await database.drop();
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
