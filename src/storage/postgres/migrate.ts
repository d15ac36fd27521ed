/** Brings a database to the newest schema, in one transaction. */
import type { ClientBase } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { checkSchema } from "../check-schema.ts";
import type { OpenOptions } from "../storage.ts";
import fromOne from "./migrations/from-1.0.sql" with { type: "text" };
import schema from "./migrations/schema-7.sql" with { type: "text" };
import { runLong } from "./transaction.ts";

const schemaOfOne = 6;
const newest = 7;
const upgrades: Readonly<Record<number, string>> = { 0: schema, [schemaOfOne]: fromOne };

/** An arbitrary number. If several instances start at once, the one with this lock migrates. */
const lockKey = 0x504c4e54;

const tables = ["plants", "gardens", "events", "idempotency_keys", "tokens", "token_changes"];

/** The version of the schema; 0 if there is none. Fails if it is unknown. */
export async function readSchemaVersion(client: ClientBase): Promise<number> {
  // Not by to_regclass: it remembers that there was no table before another process made it.
  const { rows: places } = await client.query(
    `SELECT schemaname AS name, schemaname = current_schema() AS is_first FROM pg_catalog.pg_tables
       WHERE schemaname = ANY (current_schemas(false)) AND tablename = 'plantstore_schema'`,
  );
  if (places.length === 0) return 0;
  if (!places.some(({ is_first }) => is_first)) throw refuseSecond(places[0].name);
  const { rows } = await client.query("SELECT version FROM plantstore_schema");
  const found = Number(rows[0]?.version ?? 0);
  checkSchema(found, { newest, upgrades });
  return found;
}

/** New tables would hide the existing ones from the instances that serve them. */
function refuseSecond(name: string): PlantStoreError {
  return new PlantStoreError(
    "unavailable",
    `its store is in the schema ${JSON.stringify(name)}, which is not the first of the search path: ` +
      "have ALTER ROLE set one that begins with it, or leaves it out",
  );
}

/** Fails if the database holds no store; else returns its schema. */
export async function requireStore(client: ClientBase): Promise<number> {
  const found = await readSchemaVersion(client);
  if (found === 0) throw new PlantStoreError("unavailable", "it holds no plant store yet");
  return found;
}

/** Fails unless the schema is this version's: others may be using it, so it can't be migrated. */
export async function requireNewest(client: ClientBase): Promise<void> {
  const found = await requireStore(client);
  if (found === newest) return;
  throw new PlantStoreError(
    "unavailable",
    `its schema is ${found}, and this version's is ${newest}: use the version that serves it`,
  );
}

/** The lock ends with the transaction, so it also works through PgBouncer. */
export async function migrate(
  client: ClientBase,
  onMigration?: OpenOptions["onMigration"],
): Promise<void> {
  if ((await readSchemaVersion(client)) === newest) return;
  await runLong(client, "write", async () => {
    await client.query("SELECT pg_advisory_xact_lock($1::bigint)", [lockKey]);
    const from = await readSchemaVersion(client);
    if (from === newest) return;
    if (from === 0) await client.query(versionTable);
    else onMigration?.(`from schema ${from} to ${newest}; this may take minutes`);
    await client.query(upgrades[from] ?? "");
    await client.query(`UPDATE plantstore_schema SET version = ${newest}`);
  });
}

const versionTable = `
  CREATE TABLE plantstore_schema
    (one bigint NOT NULL PRIMARY KEY CHECK (one = 1), version bigint NOT NULL);
  INSERT INTO plantstore_schema (one, version) VALUES (1, 0)`;

/**
 * Fails, naming what is missing, unless the role has these rights on all tables, and row-level
 * security hides no rows from it.
 */
export async function requireRights(
  client: ClientBase,
  rights: readonly string[] = ["SELECT", "INSERT", "UPDATE", "DELETE"],
): Promise<void> {
  const { rows } = await client.query(
    `SELECT name, privilege FROM unnest($1::text[]) AS tables (name)
       CROSS JOIN unnest($2::text[]) AS privileges (privilege)
       WHERE CASE privilege WHEN 'BYPASSRLS' THEN row_security_active(name)
         ELSE NOT has_table_privilege(name, privilege) END`,
    [tables, [...rights, "BYPASSRLS"]],
  );
  if (rows.length === 0) return;
  const missing = rows.map(({ name, privilege }) => `${privilege} on ${name}`).join(", ");
  throw new PlantStoreError("unavailable", `the role lacks rights: ${missing}`);
}
