/** What only a file can do: it is served once, corrupt, full, private, created twice. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "../../../test/storage/tested-storage.ts";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { openSqlite } from "./engine.ts";
import { mapCommitError, mapError } from "./errors.ts";
import { migrate } from "./migrate.ts";
import { connect, readPragma, useWriteAheadLog } from "./open.ts";
import { GardenVersions } from "./versions.ts";
import { createWriter } from "./writer.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let path: string;

beforeEach(() => {
  folder = makeTemporaryFolder();
  path = join(folder.path, "plants.db");
});

afterEach(() => folder[Symbol.dispose]());

test("every connection has the settings that durability and safety rest on", () => {
  using database = connect(touch(path));
  const names = ["synchronous", "fullfsync", "foreign_keys", "trusted_schema", "busy_timeout"];
  const values = names.map((name) => readPragma(database, name));
  expect(values).toEqual([2n, 1n, 1n, 0n, 5_000n]);
});

test("a file without support for a write-ahead log is refused", () => {
  // Whose mode it leaves as it is, without a word, as that of a file where memory is not shared.
  using database = new Database(":memory:");
  expect(() => useWriteAheadLog(database)).toThrow("does not support a write-ahead log");
});

test("a link to a missing folder, such as a disk that is not mounted, is reported", () => {
  const link = join(folder.path, "data");
  symlinkSync(join(folder.path, "disk"), link);
  const opening = () => openSqlite(join(link, "plants.db"), { isServing: false });
  expect(opening).toThrow("a link that leads nowhere");
});

test("nobody serves a file through a link to it as well", async () => {
  symlinkSync(path, join(folder.path, "dangling.db"));
  const serving = openSqlite(join(folder.path, "dangling.db"), { isServing: true });
  expect(() => openSqlite(path, { isServing: true })).toThrow("another process is serving it");
  await serving.close();
});

test("only their owner can read the files", async () => {
  const storage = openSqlite(path, { isServing: true });
  await storage.apply([create()]);
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-serving`]) {
    expect([file, statSync(file).mode & 0o777]).toEqual([file, 0o600]);
  }
  await storage.close();
});

test("the tables are created once, even if another process has created them just before", () => {
  using database = connect(touch(path));
  using other = connect(path);
  const begin = database.transaction.bind(database);
  database.transaction = (work) => {
    migrate(other);
    other.run("INSERT INTO gardens VALUES ('home', 0, 0, 0, 0)");
    return begin(work);
  };
  expect(migrate(database)).toBe(false);
  expect(database.query("SELECT garden FROM gardens").all()).toEqual([{ garden: "home" }]);
});

test("a garden has no version while a commit is under way, so nobody caches its lists", () => {
  const versions = new GardenVersions();
  const end = versions.begin([create()]);
  expect(versions.read("home")).toEqual({ all: undefined, withoutAppends: 0 });
  end();
  expect(versions.read("home")).toEqual({ all: 2, withoutAppends: 0 });
});

/** Overwrites the first page of the plants. */
function damagePlants(): void {
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

test("a corrupt file is not served, but a command can open it to revoke tokens", async () => {
  await openSqlite(path, { isServing: false }).close();
  damagePlants();
  expect(() => openSqlite(path, { isServing: true })).toThrow(
    /^Cannot open .+ it is corrupt .+\.$/,
  );
  const opened = openSqlite(path, { isServing: false });
  expect(await opened.listTokens()).toEqual([]);
  // A write that failed before its commit has no unknown outcome.
  for (const work of [() => opened.list("home", undefined, 9), () => opened.apply([create()])]) {
    expect(await work().catch((error) => error)).toMatchObject({
      code: "unavailable",
      message: "The database file is corrupt. Restore a backup.",
    });
  }
  await opened.close();
});

/** What SQLite throws if a row doesn't fit. */
function failToInsert(pragma: string): unknown {
  using database = new Database(path);
  database.run("CREATE TABLE plants (name TEXT NOT NULL UNIQUE)");
  database.run(pragma);
  try {
    return database.run("INSERT INTO plants VALUES (?)", ["x".repeat(100_000)]);
  } catch (error) {
    return error;
  }
}

test.each([
  ["full", "storage-full", "storage is full", "PRAGMA max_page_count = 3"],
  ["read-only", "unavailable", "outcome is unknown", "PRAGMA query_only = ON"],
])(
  "a %s storage is %s, without a word of the file or the query, and if it fails a commit, the %s",
  (_, code, ofCommit, pragma) => {
    const thrown = failToInsert(pragma);
    for (const shown of [mapError(thrown), mapCommitError(thrown)] as Error[]) {
      expect(shown).toMatchObject({ code, cause: thrown });
      expect(shown.message).not.toMatch(/SQL|plants\.db/);
    }
    using database = connect(touch(`${path}-other`));
    migrate(database);
    const { query } = database;
    const failCommit = (text: string) => {
      if (text !== "COMMIT") return query.call(database, text);
      return {
        run() {
          throw thrown;
        },
      };
    };
    database.query = failCommit as typeof query;
    expect(() => createWriter(database).apply([create()])).toThrow(ofCommit);
    expect(database.query("SELECT * FROM plants").all()).toEqual([]);
  },
);
