/** What only a file can do: it is served once, full, private, and shared by threads. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, renameSync, statSync, symlinkSync } from "node:fs";
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

test("only their owner can read the files, and nobody serves them through a link as well", async () => {
  const link = join(folder.path, "link.db");
  symlinkSync(path, link);
  await openSqlite(path, { isServing: false }).close();
  const storage = openSqlite(link, { isServing: true });
  await storage.apply([create()]);
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-serving`]) {
    expect([file, statSync(file).mode & 0o777]).toEqual([file, 0o600]);
  }
  expect(() => openSqlite(path, { isServing: true })).toThrow("another process is serving it");
  await storage.close();
});

test("a file that takes the store's name is never written to", async () => {
  const token = { id: "1", hash: "", user: "ann", garden: "ann", scope: "write" } as const;
  const unused = { note: "", createdAtMs: 0, expiresAtMs: undefined, revokedAtMs: undefined };
  const first = openSqlite(path, { isServing: false });
  await first.addToken({ ...token, ...unused, lastUsedAtMs: undefined });
  await first.close();
  const storage = openSqlite(path, { isServing: true });
  const other = join(folder.path, "other.db");
  copyFileSync(path, other);
  renameSync(other, path);
  // The thread that writes connects now.
  const noting = storage.noteTokenUses([{ id: "1", usedAtMs: 7 }]);
  expect(await noting.catch(({ message }) => message)).toContain("removed, replaced or emptied");
  await storage.close();
  using database = connect(path);
  expect(database.query("SELECT last_used_at_ms FROM tokens").values()).toEqual([[null]]);
});

test("a garden has no version while a commit is under way, so nobody caches its lists", () => {
  const versions = new GardenVersions();
  const end = versions.begin([create()]);
  expect(versions.read("home")).toBeUndefined();
  end();
  expect(versions.read("home")).toBe(2);
});

test("after a failed commit, other processes' changes still make lists stale", async () => {
  const storage = openSqlite(path, { isServing: true });
  await storage.apply([create()]);
  using intruder = new Database(path);
  intruder.run("BEGIN IMMEDIATE");
  expect(await storage.apply([create()]).catch(({ code }) => code)).toBe("unavailable");
  intruder.run("COMMIT");
  const before = storage.version("home");
  intruder.run("DELETE FROM plants");
  const changed = () => storage.version("home") !== before || undefined;
  await waitFor(changed, undefined, 10_000);
  await storage.close();
});

test.each([
  ["full", "storage-full", "storage is full", "max_page_count = 1"],
  ["read-only", "unavailable", "outcome is unknown", "query_only = ON"],
])(
  "a %s storage is %s, without a word of the file or the query, and if it fails a commit, the %s",
  (_, code, ofCommit, pragma) => {
    using database = connect(touch(path));
    createSchema(database);
    const write = (name: string) => createWriter(database).apply([create({ name })]);
    database.run(`PRAGMA ${pragma}`);
    const thrown = fail(() => write("x".repeat(100_000)));
    for (const shown of [mapError(thrown), mapCommitError(thrown)] as Error[]) {
      expect(shown).toMatchObject({ code, cause: thrown });
      expect(shown.message).not.toMatch(/SQL|plants\.db/);
    }
    database.run("PRAGMA query_only = OFF");
    const { query } = database;
    const failing = {
      run() {
        throw thrown;
      },
    };
    database.query = ((text: string) =>
      text === "COMMIT" ? failing : query.call(database, text)) as typeof query;
    expect(() => write("Fern")).toThrow(ofCommit);
    expect(database.query("SELECT * FROM plants").all()).toEqual([]);
  },
);

test("a group that fails does not fail the group of another thread that shares its commit", async () => {
  const first = openSqlite(path, { isServing: true });
  const second = openSqlite(path, { isServing: true, share: first.share().state });
  using intruder = new Database(path);
  intruder.run(`CREATE TRIGGER stop BEFORE INSERT ON plants WHEN new.id = 3
    BEGIN SELECT raise(ROLLBACK, 'stopped'); END`);
  const groups = [new GroupCommit(first), new GroupCommit(second)] as const;
  const [failed, done] = await Promise.allSettled([
    groups[0].writeAll([create({ id: 2n }), create({ id: 3n })]),
    groups[1].writeAll([create({ id: 4n })]),
  ]);
  expect(failed.status).toBe("rejected");
  expect(done).toMatchObject({ value: [created(4n)] });
  expect((await second.list("home", undefined, 10)).map(({ id }) => id)).toEqual([4n]);
  await second.close();
  await first.close();
});

function fail(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
