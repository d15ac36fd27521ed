/** What a write leaves in the file, and what others did to the file before it. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, created } from "../../../test/storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { issueToken } from "../../auth/opaque-token.ts";
import { openSqlite } from "./engine.ts";

const idempotency = { key: "the-key", nowMs: 0, expiresAtMs: 1_000 };

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

test("changes of tokens are counted, also after another program deleted the count", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: true });
  using other = new Database(path);
  other.run("DELETE FROM token_changes");
  const { record } = await issueToken(storage, { user: "alice" }, 0);
  expect(await storage.countTokenChanges()).toBe(1);
  await storage.revokeToken(record.id, 1);
  expect(await storage.countTokenChanges()).toBe(2);
  await storage.close();
});
