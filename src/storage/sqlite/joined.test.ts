/**
 * Several threads on one storage: each joins the worker that commits, and gets its own outcomes.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeStorage } from "../../../test/storage-contract/storage-contract.ts";
import {
  create,
  created,
  remove,
  type StorageWish,
  type TestedStorage,
} from "../../../test/storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { openSqlite } from "./engine.ts";

async function openJoined(
  options: StorageWish = {},
): Promise<TestedStorage & { path: string; first: TestedStorage["storage"] }> {
  const folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const first = openSqlite(path, { isServing: true, ...options });
  const storage = openSqlite(path, { isServing: true, joins: first.share() });
  return {
    path,
    first,
    storage,
    openAgain: async (others) => openSqlite(path, { isServing: false, ...others }),
    async execute(sql) {
      using database = new Database(path);
      database.run(sql);
    },
    async remove() {
      await storage.close();
      await first.close();
      folder[Symbol.dispose]();
    },
  };
}

describeStorage("a SQLite file, joined from another thread", openJoined);

test("groups of several threads that wait at once get their own outcomes, in their own order", async () => {
  const { first, storage, remove: removeAll } = await openJoined();
  const outcomes = await Promise.all([
    first.apply([create({ id: 1n }), create({ id: 2n })]),
    storage.apply([create({ id: 2n })]),
    storage.forgetKeys(0),
    storage.apply([remove(1n), create()]),
    first.apply([remove(9n)]),
  ]);
  expect(outcomes).toEqual([
    [created(1n), created(2n)],
    [{ kind: "taken" }],
    false,
    [{ kind: "deleted" }, created(3n)],
    [{ kind: "missing" }],
  ]);
  await removeAll();
});

test("a group that fails does not fail the group of another thread that shares its commit", async () => {
  const { path, first, storage, remove: removeAll } = await openJoined();
  const intruder = new Database(path);
  intruder.run(`CREATE TRIGGER stop BEFORE INSERT ON plants WHEN new.id = 3
    BEGIN SELECT raise(ROLLBACK, 'stopped'); END`);
  const results = await Promise.all([
    first.apply([create({ id: 2n }), create({ id: 3n })]).catch((error) => error),
    storage.apply([create({ id: 4n })]),
  ]);
  expect(results[0]).toBeInstanceOf(Error);
  expect(results[1]).toEqual([created(4n)]);
  expect((await storage.list("home", undefined, 10)).map(({ id }) => id)).toEqual([4n]);
  intruder.close();
  await removeAll();
});
