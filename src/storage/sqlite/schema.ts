/** Creates the schema of a new file, and refuses files with another one. */
import type { Database } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";
import { checkSchema } from "../storage.ts";
import schema from "./migrations/schema-5.sql" with { type: "text" };
import { applicationId, readPragma } from "./open.ts";

const newest = 5;

/** Fails, before anything is written, if the file is another program's or of another version. */
export function checkFile(database: Database): void {
  const found = Number(readPragma(database, "user_version"));
  const owner = readPragma(database, "application_id");
  const isEmpty = readPragma(database, "schema_version") === 0n;
  if (isEmpty && owner === 0n && found === 0) return;
  if (owner !== BigInt(applicationId)) {
    throw new PlantStoreError("unavailable", "it is a SQLite database of another program");
  }
  checkSchema(found, newest);
}

/** Also fails if nothing was ever stored in it. */
export function requireStore(database: Database): void {
  checkFile(database);
  if (readPragma(database, "user_version") > 0n) return;
  throw new PlantStoreError("unavailable", "it holds no plant store yet");
}

/** Returns whether the store is new. */
export function createSchema(database: Database): boolean {
  const isDone = () => readPragma(database, "user_version") === BigInt(newest);
  if (isDone()) return false;
  const create = database.transaction(() => {
    checkFile(database);
    // Another process may have created it while this one waited for the lock.
    if (isDone()) return false;
    database.run(schema);
    database.run(`PRAGMA application_id = ${applicationId}`);
    database.run(`PRAGMA user_version = ${newest}`);
    return true;
  });
  return create.immediate();
}
