/**
 * Looks at a file before anything is written to it: one that is refused stays as it is, down to the
 * log beside it.
 */
import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import { readDescription } from "../sealed-file.ts";
import { connect } from "./connection.ts";
import { checkFile } from "./migrate.ts";

export const damaged = "it is damaged (restore a copy of it)";

/** A start takes 5 ms longer for each of them. The check of a larger file is the backup's. */
const checkedMebibytesMax = 16;

/** A log that is no longer holds nothing, as a power cut in a first start may leave it. */
const logHeaderBytes = 32;

/** The size of a database is a multiple of this. */
const pageBytesMin = 512;

/**
 * Fails if the file is another program's, of a newer version, a backup, or to be served and
 * damaged. What it hands back is to be closed when the opening has succeeded or failed: until then
 * no other connection folds the log into the file.
 */
export function lookAt(file: string, isServing: boolean): Database | undefined {
  const hasLog = checkLog(file);
  // Any other connection would fold the log into the file when it is closed; and this one would
  // leave an empty log behind where there was none, and cannot take back a journal.
  const database = connect(file, hasLog ? "read" : "write");
  let isKept = false;
  try {
    checkFile(database);
    checkUnsealed(database, file);
    if (isServing) checkWhole(database, sizeOf(file) + sizeOf(`${file}-wal`));
    isKept = hasLog;
  } finally {
    if (!isKept) database.close();
  }
  return isKept ? database : undefined;
}

/**
 * Whether a log with something in it lies beside the file. Fails if the file is empty then: SQLite
 * would take it for a new one, and remove the log of what it held.
 */
export function checkLog(file: string): boolean {
  const hasLog = sizeOf(`${file}-wal`) > logHeaderBytes;
  if (!hasLog || sizeOf(file) > 0) return hasLog;
  throw new PlantStoreError("unavailable", "it is empty, but its log (-wal) is not");
}

/**
 * Fails if the file is a backup: one that was opened would be written to, if only to give it a log,
 * and its seal be broken; and a backup of it would be dated anew. Plants at the end of a store may
 * be named like a seal, but do not stand behind its last page.
 */
export function checkUnsealed(database: Database, file: string): void {
  if (sizeOf(file) % pageBytesMin === 0) return;
  const mode = database.query<{ journal_mode: string }, []>("PRAGMA journal_mode").get();
  if (mode?.journal_mode === "wal" || readDescription(file) === undefined) return;
  throw new PlantStoreError("unavailable", "it is a backup (plantstore restore unpacks it)");
}

/** SQLite finds some damage only when it looks at everything; else it would answer from it. */
function checkWhole(database: Database, bytes: number): void {
  if (bytes > checkedMebibytesMax * 2 ** 20) return;
  const rows = database.query<{ integrity_check: string }, []>("PRAGMA integrity_check(1)").all();
  if (rows[0]?.integrity_check === "ok") return;
  throw new PlantStoreError("unavailable", damaged);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
