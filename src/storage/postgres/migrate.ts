/**
 * Brings a database to the newest schema, one numbered step at a time, each applied once and whole.
 */
import type { ClientBase } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import start from "./migrations/0001-start.sql" with { type: "text" };
import limits from "./migrations/0002-limits.sql" with { type: "text" };
import keyHashes from "./migrations/0003-key-hashes.sql" with { type: "text" };
import { runLong } from "./transaction.ts";

/** The n-th entry leads from schema n to schema n + 1. Entries are only ever added. */
const migrations: readonly string[] = [start, limits, keyHashes];

/** Of several instances that start at once, the one that holds this lock migrates. Any number. */
const lockKey = 0x504c4e54;

const tables = [
  ...["plants", "gardens", "idempotency_hashes", "idempotency_keys"],
  ...["tokens", "token_changes", "rate_buckets"],
];
const all = { tables, rights: ["SELECT", "INSERT", "UPDATE", "DELETE"] };

/** The schema that the database has; 0 if it has none. Fails if it is of a newer version. */
export async function readSchema(client: ClientBase, known = migrations.length): Promise<number> {
  // Not by to_regclass: it remembers that there was no table before another process made it.
  const found = await client.query(
    `SELECT schemaname AS name, schemaname = current_schema() AS is_first FROM pg_catalog.pg_tables
       WHERE schemaname = ANY (current_schemas(false)) AND tablename = 'plantstore_schema'`,
  );
  if (found.rows.length === 0) return 0;
  if (!found.rows.some(({ is_first }) => is_first)) throw refuseSecond(found.rows[0].name);
  await requireAllRows(client, ["plantstore_schema"]);
  const { rows } = await client.query("SELECT version FROM plantstore_schema");
  const schema = Number(rows[0]?.version ?? 0);
  if (schema > known) {
    throw new PlantStoreError(
      "unavailable",
      `its schema is ${schema}, and this version knows schemas up to ${known}: use a newer version`,
    );
  }
  return schema;
}

/** New tables would hide the existing ones from the instances that serve them. */
function refuseSecond(name: string): PlantStoreError {
  return new PlantStoreError(
    "unavailable",
    `its store is in the schema ${JSON.stringify(name)}, which is not the first of the search path: ` +
      "have ALTER ROLE set one that begins with it, or leaves it out",
  );
}

/** Fails if the database holds no store. */
export async function requireStore(client: ClientBase): Promise<void> {
  if ((await readSchema(client)) > 0) return;
  throw new PlantStoreError("unavailable", "it holds no plant store yet");
}

/** Fails unless the schema is this version's: others may be using it, so it can't be migrated. */
export async function requireNewest(client: ClientBase): Promise<void> {
  await requireStore(client);
  const schema = await readSchema(client);
  if (schema === migrations.length) return;
  throw new PlantStoreError(
    "unavailable",
    `its schema is ${schema}, and this version's is ${migrations.length}: use the version that serves it`,
  );
}

/** The lock ends with the transaction, so it also works through PgBouncer. */
export async function migrate(
  client: ClientBase,
  steps: readonly string[] = migrations,
): Promise<void> {
  if ((await readSchema(client, steps.length)) === steps.length) return;
  await runLong(client, "write", async () => {
    await client.query(`SELECT pg_advisory_xact_lock(${lockKey}::bigint)`);
    const from = await readSchema(client, steps.length);
    if (from === 0) {
      await client.query(
        `CREATE TABLE plantstore_schema
           (one bigint NOT NULL PRIMARY KEY CHECK (one = 1), version bigint NOT NULL);
         INSERT INTO plantstore_schema (one, version) VALUES (1, 0)`,
      );
    }
    for (const step of steps.slice(from)) await client.query(step);
    await client.query(`UPDATE plantstore_schema SET version = ${steps.length}`);
  });
}

/** Fails, naming what is missing, unless the role has all rights on all tables. */
export async function requireRights(
  client: ClientBase,
  needed: { readonly tables: readonly string[]; readonly rights: readonly string[] } = all,
): Promise<void> {
  const { rows } = await client.query(
    `SELECT name, privilege FROM unnest($1::text[]) AS tables (name)
       CROSS JOIN unnest($2::text[]) AS privileges (privilege)
       WHERE NOT has_table_privilege(name, privilege)`,
    [needed.tables, needed.rights],
  );
  if (rows.length === 0) return requireAllRows(client);
  const missing = rows.map(({ name, privilege }) => `${privilege} on ${name}`).join(", ");
  throw new PlantStoreError("unavailable", `the role lacks rights: ${missing}`);
}

/** Fails where row-level security may silently leave out rows. */
export async function requireAllRows(
  client: Pick<ClientBase, "query">,
  names: readonly string[] = tables,
): Promise<void> {
  const { rows } = await client.query(
    "SELECT name FROM unnest($1::text[]) AS tables (name) WHERE row_security_active(name)",
    [names],
  );
  if (rows.length === 0) return;
  const hidden = rows.map(({ name }) => name).join(", ");
  throw new PlantStoreError(
    "unavailable",
    `row-level security may hide rows from the role, of ${hidden}`,
  );
}
