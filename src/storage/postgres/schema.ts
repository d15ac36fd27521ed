/** Creates the schema of an empty database, and refuses databases with another one. */
import { PlantStoreError } from "../../domain/errors.ts";
import { checkSchema } from "../storage.ts";
import type { Connection } from "./connection.ts";
import schema from "./migrations/schema-7.sql" with { type: "text" };
import { runLong } from "./transaction.ts";

const newest = 7;

/** An arbitrary number. If several instances start at once, the one with this lock migrates. */
const lockKey = 0x504c4e54;

const tables = ["plants", "gardens", "events", "idempotency_keys", "tokens", "token_changes"];

/** The version of the schema; 0 if there is none. Fails if it is unknown. */
async function readSchemaVersion(client: Connection): Promise<number> {
  // Not by to_regclass: it remembers that there was no table before another process made it.
  const { rows: stores } = await client.query(
    `SELECT schemaname AS name, schemaname = current_schema() AS is_first FROM pg_catalog.pg_tables
       WHERE schemaname = ANY (current_schemas(false)) AND tablename = 'plantstore_schema'`,
  );
  if (stores.length === 0) return 0;
  if (!stores.some(({ is_first }) => is_first)) throw secondStore(stores[0].name);
  const { rows } = await client.query("SELECT version FROM plantstore_schema");
  const found = Number(rows[0]?.version ?? 0);
  checkSchema(found, newest);
  return found;
}

/** New tables would hide the existing ones from the instances that serve them. */
function secondStore(name: string): PlantStoreError {
  return new PlantStoreError(
    "unavailable",
    `its store is in the schema ${JSON.stringify(name)}, which is not the first of the search path: ` +
      "have ALTER ROLE set one that begins with it, or leaves it out",
  );
}

/** Fails if the database holds no store. */
export async function requireStore(client: Connection): Promise<void> {
  if ((await readSchemaVersion(client)) > 0) return;
  throw new PlantStoreError("unavailable", "it holds no plant store yet");
}

/** Returns whether the store is new. The lock ends with the transaction, as PgBouncer needs it. */
export async function createSchema(client: Connection): Promise<boolean> {
  const isDone = async () => (await readSchemaVersion(client)) === newest;
  if (await isDone()) return false;
  return await runLong(client, async () => {
    await client.query("SELECT pg_advisory_xact_lock($1::bigint)", [lockKey]);
    if (await isDone()) return false;
    await client.query(versionTable);
    await client.query(schema);
    return true;
  });
}

const versionTable = `
  CREATE TABLE plantstore_schema
    (one bigint NOT NULL PRIMARY KEY CHECK (one = 1), version bigint NOT NULL);
  INSERT INTO plantstore_schema (one, version) VALUES (1, ${newest})`;

/** Fails, naming what is missing, unless the role has all rights and sees all rows. */
export async function requireRights(client: Connection): Promise<void> {
  const { rows } = await client.query(
    `SELECT name, privilege FROM unnest($1::text[]) AS tables (name)
       CROSS JOIN unnest($2::text[]) AS privileges (privilege)
       WHERE CASE privilege WHEN 'BYPASSRLS' THEN row_security_active(name)
         ELSE NOT has_table_privilege(name, privilege) END`,
    [tables, ["SELECT", "INSERT", "UPDATE", "DELETE", "BYPASSRLS"]],
  );
  if (rows.length === 0) return;
  const missing = rows.map(({ name, privilege }) => `${privilege} on ${name}`).join(", ");
  throw new PlantStoreError("unavailable", `the role lacks rights: ${missing}`);
}
