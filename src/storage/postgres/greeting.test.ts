/** A connection that is lost, or falls silent, while it is made, before anyone uses it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, created } from "../../../test/storage-contract/tested-storage.ts";
import { defaultConnectionLimits, type Storage } from "../../domain/storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(60_000);

let database: TestDatabase;
let relay: Server;
let storage: Storage;
/** What becomes of the next connection at the last answer of its greeting. */
let next: "passed" | "lost" | "silent" = "passed";

const farewell = "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";

function farewellMessage(): Buffer {
  const head = Buffer.from("E....");
  head.writeInt32BE(4 + farewell.length, 1);
  return Buffer.concat([head, Buffer.from(farewell)]);
}

/** The response to the one check of a new connection. */
function isLastAnswer(bytes: Buffer): boolean {
  return bytes.includes("transaction_read_only");
}

function pass(client: Socket, server: Socket): void {
  client.on("data", (bytes) => server.write(bytes));
  server.on("data", (bytes: Buffer) => {
    if (next === "passed" || !isLastAnswer(bytes)) return void client.write(bytes);
    const isSilent = next === "silent";
    next = "passed";
    if (isSilent) return;
    // Together, so that both are read before the first of them is acted upon.
    client.end(Buffer.concat([bytes, farewellMessage()]));
    server.destroy();
  });
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    one.on("error", () => {});
    one.on("close", () => other.destroy());
  }
}

beforeAll(async () => {
  database = await makeDatabase();
  const url = new URL(database.url);
  const { hostname, port } = url;
  relay = createServer((client) => pass(client, connect(Number(port), hostname)));
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  url.port = String((relay.address() as { port: number }).port);
  const limits = { ...defaultConnectionLimits, poolSize: 1, connectTimeoutMs: 500 };
  storage = await openPostgres(url.href, { isServing: true, limits });
});

afterAll(async () => {
  await storage.close();
  relay.close();
  await database.drop();
});

function countRelayed(): Promise<number> {
  return new Promise((resolve) => relay.getConnections((_, count) => resolve(count)));
}

async function loseConnections(fate: "lost" | "silent"): Promise<void> {
  await database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  await waitFor(async () => (await countRelayed()) === 0 || undefined);
  // The relay has closed them; those who used them see it in one of the next turns.
  await Bun.sleep(50);
  next = fate;
}

test.each(["lost", "silent"] as const)("a list is read over another one (%s)", async (fate) => {
  await loseConnections(fate);
  expect(await storage.list("home", undefined, 1)).toEqual([]);
  expect(next).toBe("passed");
});

test("a group of writes is applied over another one, once", async () => {
  await loseConnections("lost");
  expect(await storage.apply([create({ id: 1n }), create()])).toEqual([created(1n), created(2n)]);
  expect(next).toBe("passed");
});

type Fate = "passed" | "lost" | "silent";

/** A way to the server, and what becomes of all connections from now on. */
async function openWay(fate: Fate): Promise<{ port: number; turn(fate: Fate): void }> {
  const { hostname, port } = new URL(database.url);
  const clients = new Set<Socket>();
  let current = fate;
  const way = createServer((client) => {
    clients.add(client);
    client.on("error", () => {});
    if (current === "passed") pass(client, connect(Number(port), hostname));
    if (current === "lost") client.destroy();
  });
  await new Promise<void>((resolve) => way.listen(0, "127.0.0.1", resolve));
  way.unref();
  return {
    port: (way.address() as { port: number }).port,
    turn(next) {
      current = next;
      for (const client of clients) client.destroy();
    },
  };
}

test.each(["lost", "silent"] as const)(
  "another way is found, though somebody always waits for the only connection (%s)",
  async (fate) => {
    const [first, second] = [await openWay("passed"), await openWay("lost")];
    const hosts = [first, second].map(({ port }) => `127.0.0.1:${port}`).join(",");
    const url = database.url.replace(/@[^/]+/, `@${hosts}`);
    const limits = { poolSize: 1, connectTimeoutMs: 500, statementTimeoutMs: 500 };
    const crowded = await openPostgres(url, { isServing: true, limits });
    second.turn("passed");
    first.turn(fate);
    const isOver = AbortSignal.timeout(5_000);
    let isFound = false;
    const ask = async () => {
      while (!isFound && !isOver.aborted) {
        const found = await crowded.countTokenChanges().catch(() => undefined);
        isFound ||= found !== undefined && !isOver.aborted;
      }
    };
    await Promise.all(Array.from({ length: 10 }, ask));
    expect(isFound).toBe(true);
    await crowded.close();
    for (const way of [first, second]) way.turn("lost");
  },
);
