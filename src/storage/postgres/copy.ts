/** Copies a SQLite store to an empty database, in one transaction. */
import type { Database } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";
import type { ConnectionLimits, Contents } from "../storage.ts";
import type { Connection } from "./connection.ts";
import { hasState } from "./errors.ts";
import { createSchema, requireRights } from "./schema.ts";
import { TransactionRunner } from "./transaction.ts";
import { maskUrl } from "./url.ts";

/** Both engines use the same table and column names. */
const tables = ["tokens", "gardens", "idempotency_keys", "plants", "events"] as const;
const types: Readonly<Record<string, string>> = { TEXT: "text", INTEGER: "bigint", BLOB: "bytea" };

const rowsPerInsert = 2_000;

export async function fillPostgres(
  url: string,
  store: Database,
  limits: ConnectionLimits,
  signal: AbortSignal,
): Promise<Contents> {
  // Waiting for a lock or a standby has no limit here, so a signal cuts the connection.
  const cutOnAbort = (client: Connection) => {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => client.cut());
  };
  const opening = TransactionRunner.open(url, limits, async (client) => {
    cutOnAbort(client);
    await createSchema(client);
    await requireRights(client);
  });
  const { runner } = await opening.catch((error) => {
    // Not the server, but the signal has cut the connection.
    signal.throwIfAborted();
    throw error;
  });
  const counts = new Map<string, number>();
  const fill = async (client: Connection) => {
    cutOnAbort(client);
    await requireEmpty(client, url);
    for (const table of tables) counts.set(table, await fillTable(client, table, store));
    // Later tokens get higher positions.
    await client.query(
      `INSERT INTO token_changes (one, count)
         SELECT 1, greatest($1::bigint, coalesce(max(position), 0)) + 1 FROM tokens
         ON CONFLICT (one) DO UPDATE SET count = excluded.count`,
      [store.query<{ count: bigint }, []>("SELECT count FROM token_changes").get()?.count ?? 0n],
    );
  };
  try {
    await runner.runLong("The database now holds all of the store, or nothing.", fill);
  } finally {
    await runner.close();
  }
  return { plants: counts.get("plants") ?? 0, tokens: counts.get("tokens") ?? 0 };
}

/** Returns the number of rows. */
async function fillTable(client: Connection, table: string, store: Database): Promise<number> {
  const columns = store
    .query<{ name: string; type: string }, [string]>("SELECT name, type FROM pragma_table_info(?)")
    .all(table)
    // Quoted, because `user` means something else in PostgreSQL.
    .map(({ name, type }) => ({ source: `"${name}"`, name: `"${name}"`, type: types[type] }));
  // Says which of two tokens made in the same millisecond came first.
  if (table === "tokens") columns.push({ source: "rowid", name: "position", type: "bigint" });
  const arrays = columns.map(({ type }, index) => `$${index + 1}::${type}[]`);
  const insert = `INSERT INTO ${table} (${columns.map(({ name }) => name)})
    SELECT * FROM unnest(${arrays})`;
  let copied = 0;
  let rows: unknown[][] = [];
  const flush = async () => {
    const values = columns.map((_, index) => rows.map((row) => row[index]));
    copied += rows.length;
    rows = [];
    await client.query(insert, values).catch((cause) => {
      if (!hasState(cause, "22", "54")) throw cause;
      const message = `PostgreSQL can't store some rows of ${table}. No version of the service writes such rows.`;
      throw new PlantStoreError("conflict", message, { cause });
    });
  };
  const select = store.query(`SELECT ${columns.map(({ source }) => source)} FROM ${table}`);
  for (const row of select.iterate()) {
    rows.push(Object.values(row as object));
    if (rows.length === rowsPerInsert) await flush();
  }
  if (rows.length > 0) await flush();
  return copied;
}

async function requireEmpty(client: Connection, url: string): Promise<void> {
  const found = tables.map((table) => `EXISTS (SELECT 1 FROM ${table})`).join(" OR ");
  const { rows } = await client.query(`SELECT ${found} AS is_used`);
  if (rows[0]?.is_used !== true) return;
  throw new PlantStoreError(
    "conflict",
    `${maskUrl(url)} is not empty. Use a new database, and serve that one.`,
  );
}
