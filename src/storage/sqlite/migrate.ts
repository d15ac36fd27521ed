/** Brings a file to the newest schema, in one transaction. */
import { Database } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";
import { checkSchema } from "../check-schema.ts";
import type { OpenOptions } from "../storage.ts";
import fromOne from "./migrations/from-1.0.sql" with { type: "text" };
import schema from "./migrations/schema-5.sql" with { type: "text" };
import { applicationId, readPragma } from "./open.ts";

const schemaOfOne = 4;
const newest = 5;
const upgrades: Readonly<Record<number, string>> = { 0: schema, [schemaOfOne]: fromOne };

/** SHA-256 of everything in that schema. */
const fingerprintOfOne = "28cd29e9e147fc104a04aa12627bb1a8ca13d04e5f305246793068f0f371ec16";

/** Fails, before anything is written, if the file is another program's or of an unknown version. */
export function checkFile(database: Database): void {
  const found = Number(readPragma(database, "user_version"));
  const owner = readPragma(database, "application_id");
  const isEmpty = readPragma(database, "schema_version") === 0n;
  if (isEmpty && owner === 0n && found === 0) return;
  if (owner !== BigInt(applicationId)) {
    throw new PlantStoreError("unavailable", "it is a SQLite database of another program");
  }
  checkSchema(found, { newest, upgrades });
}

/** Also fails if nothing was ever stored in it. */
export function requireStore(database: Database): void {
  checkFile(database);
  if (readPragma(database, "user_version") > 0n) return;
  throw new PlantStoreError("unavailable", "it holds no plant store yet");
}

/** Whether an older version of the program made it. */
export function isOlder(database: Database): boolean {
  const found = readPragma(database, "user_version");
  return found > 0n && found < BigInt(newest);
}

export function migrate(database: Database, onMigration?: OpenOptions["onMigration"]): void {
  const readSchema = () => Number(readPragma(database, "user_version"));
  if (readSchema() === newest) return;
  database
    .transaction(() => {
      checkFile(database);
      const from = readSchema();
      // Another process may have migrated it while this one waited for the lock.
      if (from === newest) return;
      if (from > 0) onMigration?.(`from schema ${from} to ${newest}; this may take minutes`);
      database.run(upgrades[from] as string);
      database.run(`PRAGMA application_id = ${applicationId}`);
      database.run(`PRAGMA user_version = ${newest}`);
    })
    .immediate();
}

/**
 * Fails unless the schema is exactly the one that its version creates. In a backup from elsewhere,
 * a trigger could change tokens or copy plants, and a missing index would fail the service later.
 */
export function requireExactSchema(database: Database): void {
  const objects = readObjects(database);
  if (readPragma(database, "user_version") === BigInt(schemaOfOne)) {
    const fingerprint = Bun.SHA256.hash(JSON.stringify([...objects].sort()), "hex");
    if (fingerprint === fingerprintOfOne) return;
    throw new PlantStoreError("unavailable", "its schema is not the one that 1.0 creates");
  }
  using expected = new Database(":memory:");
  expected.run(schema);
  const missing = readObjects(expected);
  for (const [object, definition] of objects) {
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

/** The indexes of all versions that can be backed up; the last one is only in 1.0. */
const ownIndexes = [
  ...Array.from(schema.matchAll(/CREATE INDEX (\w+)/g), ([, name = ""]) => name),
  "idempotency_keys_of_05",
];

/** Drops the indexes that somebody has added: a backup has exactly the schema of its version. */
export function dropAddedIndexes(database: Database): void {
  const added = database.query<{ name: string }, string[]>(
    `SELECT name FROM sqlite_schema
       WHERE type = 'index' AND sql IS NOT NULL AND name NOT IN (${ownIndexes.map(() => "?")})`,
  );
  for (const { name } of added.all(...ownIndexes)) {
    database.run(`DROP INDEX "${name.replaceAll('"', '""')}"`);
  }
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
