/** What only a file can do: it is served once, corrupt, private, locked by another process. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, created } from "../../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { openSqlite } from "./engine.ts";

test("lets nobody serve a file through a link to it as well", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  symlinkSync(path, join(folder.path, "dangling.db"));
  const serving = openSqlite(join(folder.path, "dangling.db"), { isServing: true });
  expect(() => openSqlite(path, { isServing: true })).toThrow("another process is serving it");
  await serving.close();
});

/** Overwrites all plants; the tables before them stay. */
function corrupt(path: string): void {
  const bytes = readFileSync(path);
  bytes.fill(0xff, 4_096 * 9);
  writeFileSync(path, bytes);
}

test("refuses to serve a corrupt file, which a command can still open to revoke tokens", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: false });
  await storage.apply(Array.from({ length: 200 }, () => create({ name: "Fern ".repeat(30) })));
  await storage.close();
  corrupt(path);
  expect(() => openSqlite(path, { isServing: true })).toThrow(
    /^Cannot open .+ it is corrupt .+\.$/,
  );
  const opened = openSqlite(path, { isServing: false });
  expect(await opened.listTokens()).toEqual([]);
  const failure = await opened.list("home", undefined, 1_000).catch((error) => error);
  expect(failure).toMatchObject({ message: "The database file is corrupt. Restore a backup." });
  await opened.close();
});

test("makes files that only their owner can read", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: true });
  await storage.apply([create()]);
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-serving`]) {
    expect([file, statSync(file).mode & 0o777]).toEqual([file, 0o600]);
  }
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

test("a write that failed before its commit is not reported as one of unknown outcome", async () => {
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
  const idempotency = { key: "the-key", nowMs: 0, expiresAtMs: 1_000 };
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: false });
  using intruder = new Database(path);
  intruder.run("BEGIN IMMEDIATE");
  intruder.run("INSERT INTO plants (garden, id, name, tag) VALUES ('home', 1, 'Fern', '')");
  intruder.run("INSERT INTO gardens (garden, last_id, plants, keys) VALUES ('home', 1, 1, 0)");
  const applying = storage.apply([create({ id: 2n, idempotency }), create({ id: 1n })]);
  await Bun.sleep(100);
  intruder.run("COMMIT");
  expect(await applying).toEqual([created(2n), { kind: "taken" }]);
  await storage.close();
});
