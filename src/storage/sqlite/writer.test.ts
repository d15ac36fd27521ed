/** What others did to a file, damage too, is found out before a commit, not behind it. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, created } from "../../../test/storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { GroupCommit, groupCommitDefaults } from "../group-commit.ts";
import { openSqlite } from "./engine.ts";

const idempotency = { key: "the-key", request: "the-request", nowMs: 0, expiresAtMs: 1_000 };

/** SQLite keeps a 1 as the type 9 in the head of a row, and nothing as the type 0. */
function damageKey(path: string): void {
  const bytes = readFileSync(path);
  const row = bytes.indexOf("homethe-keythe-request");
  bytes[bytes.lastIndexOf(9, row)] = 0;
  writeFileSync(path, bytes);
}

test("writes beside one whose key is damaged are applied once", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const sound = openSqlite(path, { isServing: false });
  expect(await sound.apply([create({ idempotency })])).toEqual([created(1n)]);
  await sound.close();
  damageKey(path);
  const storage = openSqlite(path, { isServing: false });
  const writer = new GroupCommit(storage, { ...groupCommitDefaults, onCommit: () => {} });
  const outcomes = await Promise.all(
    [create(), create({ idempotency }), create()].map((write) =>
      writer.write(write).catch((error) => error.message),
    ),
  );
  expect(outcomes).toEqual([created(2n), { kind: "damaged" }, created(3n)]);
  const ids = (await storage.list("home", undefined, 10)).map(({ id }) => id);
  expect(ids).toEqual([1n, 2n, 3n]);
  await storage.close();
});

/** SQLite keeps a small number as the type 1, and a text of one byte as the type 15. */
function damageCounter(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.indexOf(Buffer.from("\x03\x15\x01home\x02", "latin1")) + 2] = 15;
  writeFileSync(path, bytes);
}

test("a garden whose counter of ids is damaged takes no plants, and other gardens do", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const sound = openSqlite(path, { isServing: false });
  expect(await sound.apply([create(), create()])).toEqual([created(1n), created(2n)]);
  await sound.close();
  damageCounter(path);
  const storage = openSqlite(path, { isServing: false });
  const writes = [create(), create({ id: 9n }), create({ garden: "other" })];
  const damaged = { kind: "damaged" } as const;
  expect(await storage.apply(writes)).toEqual([damaged, damaged, created(1n)]);
  expect((await storage.list("home", undefined, 10)).length).toBe(2);
  await storage.close();
});

test("a plant that SQLite does not take, whatever the reason, is not told as created", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: false });
  using intruder = new Database(path);
  intruder.run(`CREATE TRIGGER drop_weeds BEFORE INSERT ON plants WHEN new.name = 'Weed'
    BEGIN SELECT raise(IGNORE); END`);
  const outcomes = await storage.apply([create({ name: "Weed" }), create({ name: "Fern" })]);
  expect(outcomes).toEqual([{ kind: "damaged" }, created(1n)]);
  expect(await storage.list("home", undefined, 10)).toMatchObject([{ name: "Fern" }]);
  await storage.close();
});

/** So that SQLite cannot add to it. */
function damagePlants(path: string): void {
  using database = new Database(path);
  const pageOf = database.query<{ page: number; size: number }, []>(
    `SELECT rootpage AS page, page_size AS size FROM sqlite_master, pragma_page_size
       WHERE name = 'plants'`,
  );
  const { page, size } = pageOf.get() ?? { page: 0, size: 0 };
  const bytes = readFileSync(path);
  bytes.fill(0xff, (page - 1) * size, page * size);
  writeFileSync(path, bytes);
}

test("a write that failed before its commit is not told as one of unknown outcome", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  await openSqlite(path, { isServing: false }).close();
  damagePlants(path);
  const storage = openSqlite(path, { isServing: false });
  const failure = await storage.apply([create()]).catch((error) => error);
  expect(failure).toMatchObject({
    code: "unavailable",
    message: "The database file is corrupt. Restore a backup.",
  });
  await storage.close();
});

test("a write waits for that of another process, and is decided by what that left", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: false });
  using intruder = new Database(path);
  intruder.run("BEGIN IMMEDIATE");
  intruder.run("INSERT INTO plants (garden, id, name, tag) VALUES ('home', 1, 'Fern', '')");
  const applying = storage.apply([create({ id: 2n, idempotency }), create({ id: 1n })]);
  await Bun.sleep(100);
  intruder.run("COMMIT");
  expect(await applying).toEqual([created(2n), { kind: "taken" }]);
  await storage.close();
});
