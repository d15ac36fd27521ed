/** What is special about a file: settings, permissions, who serves it, threads, and a full disk. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { waitFor } from "../../../testing/running-service.ts";
import { makeTemporaryFolder, touch } from "../../../testing/temporary-folder.ts";
import { create, created } from "../../../testing/tested-storage.ts";
import { GroupCommit } from "../group-commit.ts";
import { openSqlite } from "./engine.ts";
import { mapCommitError, mapError } from "./errors.ts";
import { connect, readPragma, useWriteAheadLog } from "./open.ts";
import { createSchema } from "./schema.ts";
import { GardenVersions } from "./versions.ts";
import { createWriter } from "./writer.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let path: string;

beforeEach(() => {
  folder = makeTemporaryFolder();
  path = join(folder.path, "plants.db");
});

afterEach(() => folder[Symbol.dispose]());

describe("every connection", () => {
  test("syncs each commit to the disk", () => {
    using database = connect(touch(path));
    const full = 2n;
    expect(readPragma(database, "synchronous")).toBe(full);
    expect(readPragma(database, "fullfsync")).toBe(1n);
  });

  test("enforces foreign keys", () => {
    using database = connect(touch(path));
    expect(readPragma(database, "foreign_keys")).toBe(1n);
  });

  test("doesn't trust the file's schema", () => {
    using database = connect(touch(path));
    expect(readPragma(database, "trusted_schema")).toBe(0n);
  });

  test("waits up to five seconds for another process's lock", () => {
    using database = connect(touch(path));
    expect(readPragma(database, "busy_timeout")).toBe(5_000n);
  });
});

test("a file without support for a write-ahead log is refused", () => {
  // SQLite silently keeps its mode, as with a file on a file system without shared memory.
  using database = new Database(":memory:");
  expect(() => useWriteAheadLog(database)).toThrow("does not support a write-ahead log");
});

test.each([
  { way: "directly", name: "plants.db" },
  { way: "through a link", name: "link.db" },
])("only their owner can read files that are opened $way", async ({ name }) => {
  symlinkSync(path, join(folder.path, "link.db"));
  await openSqlite(path, { isServing: false }).close();
  const storage = openSqlite(join(folder.path, name), { isServing: true });
  await storage.apply([create()]);
  const permissionsOf = (file: string) => statSync(file).mode & 0o777;
  expect(permissionsOf(path)).toBe(0o600);
  expect(permissionsOf(`${path}-wal`)).toBe(0o600);
  expect(permissionsOf(`${path}-shm`)).toBe(0o600);
  expect(permissionsOf(`${path}-serving`)).toBe(0o600);
  await storage.close();
});

test("a file that is served through a link can't be served directly as well", async () => {
  const link = join(folder.path, "link.db");
  symlinkSync(path, link);
  await openSqlite(path, { isServing: false }).close();
  const storage = openSqlite(link, { isServing: true });
  expect(() => openSqlite(path, { isServing: true })).toThrow("another process is serving it");
  await storage.close();
});

test("files that are made through a link are beside the real one", async () => {
  const other = makeTemporaryFolder(folder.path);
  const link = join(other.path, "link.db");
  symlinkSync(path, link);
  await openSqlite(path, { isServing: false }).close();
  const storage = openSqlite(link, { isServing: true });
  await storage.apply([create()]);
  expect(readdirSync(folder.path)).toEqual(
    expect.arrayContaining(["plants.db", "plants.db-wal", "plants.db-shm", "plants.db-serving"]),
  );
  expect(readdirSync(other.path)).toEqual(["link.db"]);
  await storage.close();
});

test("a file that replaces the store's is never written to", async () => {
  const first = openSqlite(path, { isServing: false });
  await first.addToken({
    id: "1",
    hash: "",
    user: "ann",
    garden: "ann",
    scope: "write",
    note: "",
    createdAtMs: 0,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
  });
  await first.close();

  const storage = openSqlite(path, { isServing: true });
  const replacement = join(folder.path, "other.db");
  copyFileSync(path, replacement);
  renameSync(replacement, path);
  // The thread that writes connects only now.
  const noting = storage.noteTokenUses([{ id: "1", usedAtMs: 7 }]);
  expect(await noting.catch(({ message }) => message)).toContain("removed, replaced or emptied");
  await storage.close();

  using database = connect(path);
  expect(database.query("SELECT last_used_at_ms FROM tokens").values()).toEqual([[null]]);
});

test("a garden has no version during a commit, so its lists aren't cached", () => {
  const versions = new GardenVersions();
  const end = versions.begin([create()]);
  expect(versions.read("home")).toBeUndefined();
  end();
  expect(versions.read("home")).toBe(2);
});

test("after a failed commit, another process's change still changes the version", async () => {
  const storage = openSqlite(path, { isServing: true });
  await storage.apply([create()]);
  using otherProcess = new Database(path);
  otherProcess.run("BEGIN IMMEDIATE");
  const failing = storage.apply([create()]);
  expect(await failing.catch((error) => error)).toMatchObject({ code: "unavailable" });
  otherProcess.run("COMMIT");

  const before = storage.version("home");
  otherProcess.run("DELETE FROM plants");

  const hasChanged = () => storage.version("home") !== before || undefined;
  await waitFor(hasChanged, undefined, 10_000);
  await storage.close();
});

/** What the work throws. */
function errorOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("It threw nothing.");
}

describe("an error", () => {
  /** What SQLite throws for a write that is too large for the file, or while it is read-only. */
  function errorOfWriting(database: Database, pragma: string): unknown {
    createSchema(database);
    database.run(`PRAGMA ${pragma}`);
    const large = create({ name: "x".repeat(100_000) });
    return errorOf(() => createWriter(database).apply([large]));
  }

  describe.each([
    { state: "full", pragma: "max_page_count = 1", code: "storage-full" },
    { state: "read-only", pragma: "query_only = ON", code: "unavailable" },
  ])("of a $state file", ({ pragma, code }) => {
    test.each([
      { step: "before the commit", map: mapError },
      { step: "in the commit", map: mapCommitError },
    ])(`is ${code} $step, without the file's name or the query`, ({ map }) => {
      using database = connect(touch(path));
      const thrown = errorOfWriting(database, pragma);
      const error = map(thrown) as Error;
      expect(error).toMatchObject({ code, cause: thrown });
      expect(error.message).not.toMatch(/SQL|plants\.db/);
    });
  });

  /** Applies a create whose COMMIT throws this error, in a file that is writable again. */
  function applyAndFailCommit(database: Database, thrown: unknown): unknown {
    database.run("PRAGMA query_only = OFF");
    const { query } = database;
    const failingCommit = {
      run() {
        throw thrown;
      },
    };
    database.query = ((text: string) =>
      text === "COMMIT" ? failingCommit : query.call(database, text)) as typeof query;
    return errorOf(() => createWriter(database).apply([create()]));
  }

  test("of a commit to a full file says so, and nothing is stored", () => {
    using database = connect(touch(path));
    const thrown = errorOfWriting(database, "max_page_count = 1");
    expect(applyAndFailCommit(database, thrown)).toMatchObject({
      message: expect.stringContaining("storage is full"),
    });
    expect(database.query("SELECT * FROM plants").all()).toEqual([]);
  });

  test("of a commit to a read-only file says that its outcome is unknown", () => {
    using database = connect(touch(path));
    const thrown = errorOfWriting(database, "query_only = ON");
    expect(applyAndFailCommit(database, thrown)).toMatchObject({
      message: expect.stringContaining("outcome is unknown"),
    });
    expect(database.query("SELECT * FROM plants").all()).toEqual([]);
  });
});

/** The frames of the log that end a commit say how many pages the file has then. */
function countCommits(log: Buffer): number {
  const pageSize = log.readUInt32BE(8);
  let commits = 0;
  for (let frame = 32; frame < log.length; frame += 24 + pageSize) {
    if (log.readUInt32BE(frame + 4) > 0) commits++;
  }
  return commits;
}

test("threads that write at the same time share commits", async () => {
  const first = openSqlite(path, { isServing: true });
  const second = openSqlite(path, { isServing: true, share: first.share().state });
  const before = countCommits(readFileSync(`${path}-wal`));

  const rounds = 50;
  for (let round = 0; round < rounds; round++) {
    await Promise.all([first.apply([create()]), second.apply([create()])]);
  }

  const commits = countCommits(readFileSync(`${path}-wal`)) - before;
  expect(commits).toBeGreaterThanOrEqual(rounds);
  expect(commits).toBeLessThan(2 * rounds);
  await second.close();
  await first.close();
});

test("a group that fails doesn't fail another thread's group that shares its commit", async () => {
  const first = openSqlite(path, { isServing: true });
  const second = openSqlite(path, { isServing: true, share: first.share().state });
  using intruder = new Database(path);
  intruder.run(`CREATE TRIGGER stop BEFORE INSERT ON plants WHEN new.id = 3
    BEGIN SELECT raise(ROLLBACK, 'stopped'); END`);

  const [failed, succeeded] = await Promise.allSettled([
    new GroupCommit(first).writeAll([create({ id: 2n }), create({ id: 3n })]),
    new GroupCommit(second).writeAll([create({ id: 4n })]),
  ]);

  expect(failed.status).toBe("rejected");
  expect(succeeded).toMatchObject({ value: [created(4n)] });
  expect(await second.list("home", undefined, 10)).toMatchObject([{ id: 4n }]);
  await second.close();
  await first.close();
});
