/** Looks through a whole file that nobody serves, before it becomes or replaces a store. */
import type { Database } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Contents } from "../backup.ts";
import { connect, countRows, readPragma } from "./connection.ts";
import { translate } from "./failure.ts";
import { checkFile } from "./migrate.ts";

/**
 * Fails with `unavailable`, in words that follow "Cannot …: ", if it is no store, is of a newer
 * version, is damaged, or does not hold what it should. Leaves it as one file, without a log beside
 * it.
 */
export function inspectSqlite(path: string, expected: Contents): void {
  let database: Database | undefined;
  try {
    database = connect(path);
    checkFile(database);
    if (readPragma(database, "user_version") === 0n) fail("it holds no plant store");
    database.run("PRAGMA journal_mode = DELETE");
    const [finding] = database
      .query<{ integrity_check: string }, []>("PRAGMA integrity_check(1)")
      .all();
    const found = finding?.integrity_check.replaceAll(/\s+/g, " ");
    if (found !== "ok") fail(`it is damaged (${found})`);
    if (database.query("PRAGMA foreign_key_check").get() !== null) fail("it is not whole");
    for (const table of ["plants", "tokens"] as const) {
      const rows = countRows(database, "main", table);
      if (rows !== expected[table]) fail(`it holds ${rows} ${table}, not ${expected[table]}`);
    }
  } catch (error) {
    throw translate(error);
  } finally {
    database?.close();
  }
}

function fail(reason: string): never {
  throw new PlantStoreError("unavailable", reason);
}
