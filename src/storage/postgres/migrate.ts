/**
 * Brings a database to the newest schema, one numbered step at a time, each applied once and whole.
 * Instances of the version before can go on meanwhile.
 */
import type { ClientBase } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import type { OpenOptions } from "../../domain/storage.ts";
import start from "./migrations/0001-start.sql" with { type: "text" };
import limits from "./migrations/0002-limits.sql" with { type: "text" };
import keyHashes from "./migrations/0003-key-hashes.sql" with { type: "text" };
import lines from "./migrations/0004-lines.sql" with { type: "text" };
import plantsByTag from "./migrations/0005-plants-by-tag.sql" with { type: "text" };
import type { WithConnection } from "./pool.ts";
import { runLong } from "./transaction.ts";

/** Made while others write, so not in a transaction. */
interface IndexStep {
  readonly index: string;
  readonly table: string;
  readonly statement: string;
}

type Step = string | IndexStep;

/** The n-th entry leads from schema n to schema n + 1. Entries are only ever added. */
const migrations: readonly Step[] = [
  ...[start, limits, keyHashes, lines],
  { index: "plants_by_tag", table: "plants", statement: plantsByTag },
];

/** Of several instances that start at once, the one that holds this lock migrates. Any number. */
const lockKey = 0x504c4e54;
const lockPauseMs = 100;

const tables = [
  ...["plants", "gardens", "idempotency_hashes", "idempotency_keys"],
  ...["tokens", "token_changes"],
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

interface MigrateOptions {
  readonly withConnection: WithConnection;
  readonly onMigration?: OpenOptions["onMigration"];
  readonly steps?: readonly Step[];
}

/** The lock ends with the transaction, so it also works through PgBouncer. */
export async function migrate(client: ClientBase, options: MigrateOptions): Promise<void> {
  const { steps = migrations } = options;
  while ((await readSchema(client, steps.length)) < steps.length) {
    const isLocked = await runLong(client, "write", async () => {
      // Without waiting: that holds a snapshot, and CREATE INDEX CONCURRENTLY waits for older ones.
      const lock = `SELECT pg_try_advisory_xact_lock(${lockKey}::bigint) AS is_locked`;
      const { rows } = await client.query(lock);
      if (rows[0]?.is_locked) await migrateFurther(client, options);
      return rows[0]?.is_locked === true;
    });
    if (!isLocked) await Bun.sleep(lockPauseMs);
  }
}

/** As far as one transaction goes: up to an index, which comes first in the next one. */
async function migrateFurther(client: ClientBase, options: MigrateOptions): Promise<void> {
  const { steps = migrations } = options;
  const from = await readSchema(client, steps.length);
  if (from === 0) {
    await client.query(
      `CREATE TABLE plantstore_schema
         (one bigint NOT NULL PRIMARY KEY CHECK (one = 1), version bigint NOT NULL);
       INSERT INTO plantstore_schema (one, version) VALUES (1, 0)`,
    );
  }
  let schema = from;
  for (const step of steps.slice(from)) {
    if (typeof step === "string") await client.query(step);
    // Nobody writes to new tables yet.
    else if (from === 0) await client.query(step.statement.replace("CONCURRENTLY", ""));
    else if (schema === from) await makeIndex(step, options);
    else break;
    schema++;
  }
  await client.query(`UPDATE plantstore_schema SET version = ${schema}`);
}

/** An attempt that failed has left an invalid index, which is made again. */
async function makeIndex(step: IndexStep, options: MigrateOptions): Promise<void> {
  const { index, table, statement } = step;
  options.onMigration?.(`making the index ${index}; this may take minutes`);
  await options.withConnection(async (client) => {
    // An attempt whose process was killed may still be at work. Waiting for its lock could hold a
    // snapshot that it waits for itself.
    const atWork = `SELECT FROM pg_stat_progress_create_index
      WHERE datname = current_database() AND relid = $1::regclass`;
    while ((await client.query(atWork, [table])).rowCount) await Bun.sleep(lockPauseMs);
    const { rows } = await client.query(
      `SELECT indisvalid AS is_valid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
         WHERE relname = $1 AND relnamespace = current_schema()::regnamespace`,
      [index],
    );
    if (rows[0]?.is_valid) return;
    await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${index}`);
    await client.query(statement);
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
async function requireAllRows(
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
