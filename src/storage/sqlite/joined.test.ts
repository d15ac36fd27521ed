/**
 * Several threads on one storage: each joins the worker that commits, and gets its own outcomes.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { renameSync, rmSync, symlinkSync } from "node:fs";
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

test("a thread takes no writes if the file was replaced before it joined, as no other does", async () => {
  using folder = makeTemporaryFolder();
  const [path, other] = [join(folder.path, "plants.db"), join(folder.path, "other.db")];
  await openSqlite(other, { isServing: false }).close();
  const first = openSqlite(path, { isServing: true });
  await first.apply([create()]);
  const joins = first.share();
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix);
  renameSync(other, path);
  const storage = openSqlite(path, { isServing: true, joins });
  const codes = [storage.apply([create()]), storage.ping()].map((promise) =>
    promise.then(
      () => "none",
      (error) => error.code,
    ),
  );
  expect(await Promise.all(codes)).toEqual(["unavailable", "unavailable"]);
  await storage.close();
  await first.close();
});

test("a thread opens the file that the process did, wherever a link to it leads by then", async () => {
  using folder = makeTemporaryFolder();
  const [link, path, other] = ["link.db", "plants.db", "other.db"].map((name) =>
    join(folder.path, name),
  ) as [string, string, string];
  await openSqlite(other, { isServing: false }).close();
  symlinkSync(path, link);
  const first = openSqlite(link, { isServing: true });
  const joins = first.share();
  rmSync(link);
  symlinkSync(other, link);
  const storage = openSqlite(link, { isServing: true, joins });
  expect(await storage.apply([create({ id: 1n })])).toEqual([created(1n)]);
  expect(await storage.list("home", undefined, 10)).toHaveLength(1);
  await storage.close();
  await first.close();
});
