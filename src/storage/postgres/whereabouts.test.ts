/** A role whose search path is changed while it is used. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create } from "../../../test/storage-contract/tested-storage.ts";
import type { Storage } from "../../domain/storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(60_000);

let database: TestDatabase;
let storage: Storage;

const lead = (path: string) =>
  database.query(`ALTER DATABASE ${database.name} SET search_path = ${path}`);
/** Enough at once that there are more connections. */
const listAll = () =>
  Promise.all(Array.from({ length: 4 }, () => storage.list("home", undefined, 10)));

beforeEach(async () => {
  database = await makeDatabase();
  await database.query("CREATE SCHEMA one");
  await lead("one");
  storage = await openPostgres(database.url, { isServing: true });
  await storage.apply([create({ id: 1n })]);
});

afterEach(async () => {
  await storage.close();
  await database.drop();
});

test("no connection is used that finds another store, and none that finds no store", async () => {
  await database.query("CREATE SCHEMA other");
  await lead("other");
  await (await openPostgres(database.url, { isServing: true })).close();
  await expect(listAll()).rejects.toMatchObject({ code: "unavailable" });
  await lead("nowhere");
  await expect(listAll()).rejects.toMatchObject({ code: "unavailable" });
  await lead("one");
  expect(await listAll()).toEqual(Array(4).fill([expect.objectContaining({ id: 1n })]));
});

test("a path that leads to the same store is as good", async () => {
  await database.query("CREATE SCHEMA before");
  await lead("before, one");
  expect((await listAll()).map((plants) => plants.length)).toEqual([1, 1, 1, 1]);
});
