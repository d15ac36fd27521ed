/** More reads than connections: they share statements, and leave a connection to writes. */
import { afterEach, beforeEach, expect, mock, setDefaultTimeout, spyOn, test } from "bun:test";
import { Client } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create } from "../../../test/storage/tested-storage.ts";
import { plantIdMax, plantIdMin } from "../../domain/plant.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

const limits = { ...defaultConnectionLimits, poolSize: 2 };

let database: TestDatabase;
let storage: Storage;
let intruder: Client;

beforeEach(async () => {
  database = await makeDatabase();
  storage = await openPostgres(database.url, { isServing: true, limits });
  intruder = new Client(database.url);
  await intruder.connect();
});

/** So that no read waits too long for its turn, however busy the machine is. */
function stopTime(): void {
  spyOn(performance, "now").mockReturnValue(performance.now());
}

afterEach(async () => {
  mock.restore();
  await intruder.end();
  await storage.close();
  await database.drop();
});

test("one connection is left to writes, however many lists wait", async () => {
  // Both connections are there.
  await Promise.all([storage.noteTokenUses([]), storage.list("home", undefined, 1)]);
  await intruder.query("BEGIN; LOCK TABLE plants");
  // Of both kinds: reads that share a statement, and reads that don't.
  const lists = Array.from({ length: 20 }, (_, index) => storage.list("home", 1n, 10 * index));
  const reads = Promise.allSettled(lists);
  await waitFor(async () => {
    const { rows } = await intruder.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    return rows.length === 1 || undefined;
  });
  // While the lists wait.
  await storage.noteTokenUses([]);
  await intruder.query("ROLLBACK");
  // What waited for longer than half a second is refused.
  for (const read of await reads) {
    if (read.status === "fulfilled") expect(read.value).toEqual([]);
    else expect(read.reason).toMatchObject({ code: "unavailable" });
  }
});

test("lists that wait at the same time each get their own plants", async () => {
  const ids = [plantIdMin, -1n, 0n, 1n, 2n, plantIdMax];
  const gardens = Array.from({ length: 150 }, (_, index) => `garden ${index}`);
  await storage.apply(
    gardens.flatMap((garden) => ids.map((id) => create({ garden, id, name: `${garden} ${id}` }))),
  );
  const expected = (garden: string, after: bigint | undefined, count: number) =>
    ids
      .filter((id) => after === undefined || id > after)
      .slice(0, count)
      .map((id) => ({ id, name: `${garden} ${id}`, tag: "" }));
  const lists = gardens.flatMap((garden, index) =>
    [undefined, ...ids].map((after) => [garden, after, index % 9] as const),
  );
  stopTime();
  const pages = await Promise.all(lists.map((list) => storage.list(...list)));
  expect(pages).toEqual(lists.map((list) => expected(...list)));
});

test("a service that runs while a migration adds a column goes on", async () => {
  const find = () => Promise.all([storage.findToken("h"), storage.listTokens()]);
  expect(await find()).toEqual([undefined, []]);
  await database.query("ALTER TABLE tokens ADD COLUMN color text");
  await database.query("ALTER TABLE plants ADD COLUMN color text");
  expect(await find()).toEqual([undefined, []]);
  await storage.apply([create()]);
  expect(await storage.list("home", undefined, 1)).toMatchObject([{ id: 1n }]);
});
