/** Brings a file to the newest schema, one numbered step at a time, each applied once and whole. */
import { Database } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";
import type { OpenOptions } from "../../domain/storage.ts";
import { sha256 } from "../key-rows.ts";
import start from "./migrations/0001-start.sql" with { type: "text" };
import keyHashes from "./migrations/0002-key-hashes.sql" with { type: "text" };
import tagsAndLines from "./migrations/0003-tags-and-lines.sql" with { type: "text" };
import { applicationId, readPragma } from "./open.ts";

type Step = string | ((database: Database) => void);

/** The n-th entry leads from schema n to schema n + 1. Entries are only ever added. */
const migrations: readonly Step[] = [start, hashKeys, tagsAndLines];

/** Fails, before anything is written, if the file is another program's or of a newer version. */
export function checkFile(database: Database, known = migrations.length): void {
  const schema = readPragma(database, "user_version");
  const owner = readPragma(database, "application_id");
  const isEmpty = readPragma(database, "schema_version") === 0n;
  if (isEmpty && owner === 0n && schema === 0n) return;
  if (owner !== BigInt(applicationId)) {
    throw new PlantStoreError("unavailable", "it is a SQLite database of another program");
  }
  if (schema > BigInt(known)) {
    throw new PlantStoreError(
      "unavailable",
      `its schema is ${schema}, and this version knows schemas up to ${known}: use a newer version`,
    );
  }
}

/** Fails as well if nothing was ever stored in it. */
export function requireStore(database: Database): void {
  checkFile(database);
  if (readPragma(database, "user_version") > 0n) return;
  throw new PlantStoreError("unavailable", "it holds no plant store yet");
}

/** Whether an older version of the program made it. */
export function isOlder(database: Database): boolean {
  const schema = readPragma(database, "user_version");
  return schema > 0n && schema < BigInt(migrations.length);
}

export function migrate(
  database: Database,
  steps: readonly Step[] = migrations,
  onMigration?: OpenOptions["onMigration"],
): void {
  if (readPragma(database, "user_version") === BigInt(steps.length)) return;
  // The lock comes first, so that of two processes that start at once only one migrates.
  database
    .transaction(() => {
      checkFile(database, steps.length);
      const from = Number(readPragma(database, "user_version"));
      if (from > 0) onMigration?.(`from schema ${from} to ${steps.length}; this may take minutes`);
      applySteps(database, steps.slice(from));
      database.run(`PRAGMA application_id = ${applicationId}`);
      database.run(`PRAGMA user_version = ${steps.length}`);
    })
    .immediate();
}

function applySteps(database: Database, steps: readonly Step[]): void {
  for (const step of steps) {
    if (typeof step === "string") database.run(step);
    else step(database);
  }
}

/**
 * Fails unless the schema is exactly the one of its version. A trigger in a backup from elsewhere
 * could change tokens or copy plants, and without an index or a table the service would fail later.
 */
export function requireExactSchema(database: Database): void {
  const version = Number(readPragma(database, "user_version"));
  using expected = new Database(":memory:");
  applySteps(expected, migrations.slice(0, version));
  const missing = readObjects(expected);
  for (const [object, definition] of readObjects(database)) {
    const known = missing.get(object);
    missing.delete(object);
    if (known === definition) continue;
    const problem =
      known === undefined
        ? `it has the ${object}, which Plant Store doesn't create`
        : `its ${object} differs from the one that Plant Store creates`;
    throw new PlantStoreError("unavailable", problem);
  }
  const [object] = missing.keys();
  if (object !== undefined) throw new PlantStoreError("unavailable", `it lacks the ${object}`);
}

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/** Everything in a schema, such as `table "plants"`, and how it is defined. */
function readObjects(database: Database): Map<string, string> {
  const rows = database.query<SchemaRow, []>("SELECT type, name, tbl_name, sql FROM sqlite_schema");
  const objects = rows.all().map(({ type, name, tbl_name, sql }) => {
    return [`${type} ${JSON.stringify(name)}`, JSON.stringify([tbl_name, sql])] as const;
  });
  return new Map(objects);
}

interface KeyRow {
  readonly garden: string;
  readonly key: string;
  readonly request: string;
  readonly plant_id: bigint;
  readonly expires_at_ms: bigint;
}

/** In code, because SQLite has no SHA-256. */
function hashKeys(database: Database): void {
  database.run(keyHashes);
  const keys = database.query<KeyRow, []>("SELECT * FROM idempotency_keys");
  const insert = database.query("INSERT INTO idempotency_hashes VALUES (?, ?, ?, ?, ?)");
  for (const { garden, key, request, plant_id, expires_at_ms } of keys.iterate()) {
    insert.run(garden, sha256(key), sha256(request), plant_id, expires_at_ms);
  }
  database.run("DELETE FROM idempotency_keys");
}
