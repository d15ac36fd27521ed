/** Copies a database as of one moment to a SQLite file, and such a file to an empty database. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { ClientBase } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { makeTemporaryFolder } from "../durable-file.ts";
import type { ConnectionLimits, TransferOptions } from "../storage.ts";
import { hasState } from "./errors.ts";
import { migrate, readSchemaVersion, requireNewest, requireRights } from "./migrate.ts";
import { runLong, TransactionRunner } from "./transaction.ts";
import { maskUrl } from "./url.ts";

/** In the order they are filled. Both engines use the same table and column names. */
const tables = ["tokens", "gardens", "idempotency_keys", "plants", "events"] as const;

const batchRows = 2_000;
const transactionMs = 7 * 24 * 60 * 60 * 1000;

export async function backupPostgres(
  url: string,
  { limits, signal }: TransferOptions,
  openFile: () => Database,
): Promise<void> {
  const { runner } = await TransactionRunner.open(url, limits, async (client) => {
    await requireNewest(client);
    await requireRights(client, ["SELECT"]);
  });
  const file = openFile();
  try {
    await transact(runner, "read", async (client) => {
      // Starts over if the connection was lost.
      if (file.inTransaction) file.run("ROLLBACK");
      file.run("BEGIN");
      for (const table of tables) await readTable(client, table, file, signal);
      const { rows } = await client.query("SELECT count FROM token_changes");
      file.query("UPDATE token_changes SET count = ?").run(rows[0]?.count ?? 0n);
      file.run("COMMIT");
    });
  } finally {
    file.close();
    await runner.close();
  }
}

export async function restorePostgres(
  url: string,
  { limits, signal }: TransferOptions,
  makeFile: (path: string) => Promise<void>,
  openFile: (path: string) => Database,
): Promise<undefined> {
  await checkTarget(url, limits);
  const folder = makeTemporaryFolder();
  try {
    const path = join(folder, "plants.db");
    await makeFile(path);
    await fillDatabase(url, limits, openFile(path), signal);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Changes nothing yet: the backup may turn out to be missing or damaged. */
async function checkTarget(url: string, limits: ConnectionLimits): Promise<void> {
  let isStore = false;
  const { runner } = await TransactionRunner.open(url, limits, async (client) => {
    isStore = (await readSchemaVersion(client)) > 0;
    // Instances of an older version may be using it, and couldn't start again.
    if (isStore) await requireNewest(client);
  });
  try {
    if (isStore) await transact(runner, "read", (client) => requireEmpty(client, url));
  } finally {
    await runner.close();
  }
}

async function fillDatabase(
  url: string,
  limits: ConnectionLimits,
  file: Database,
  signal: AbortSignal,
): Promise<void> {
  let runner: TransactionRunner | undefined;
  try {
    ({ runner } = await TransactionRunner.open(url, limits, async (client) => {
      await migrate(client);
      await requireRights(client);
    }));
    await transact(runner, "write", async (client) => {
      await requireEmpty(client, url);
      for (const table of tables) await fillTable(client, table, file, signal);
      await fillTokenChanges(client, file);
    });
  } finally {
    file.close();
    await runner?.close();
  }
}

/** One transaction, however long it takes. */
function transact<Result>(
  runner: TransactionRunner,
  kind: "read" | "write",
  work: (client: ClientBase) => Promise<Result>,
): Promise<Result> {
  return runner.run(
    (client, announceCommit) =>
      runLong(client, kind, () => work(client), kind === "write" ? announceCommit : undefined),
    {
      dueAtMs: performance.now() + transactionMs,
      advice: "The database now holds all of the backup, or nothing.",
    },
  );
}

interface Column {
  /** In SQLite and in PostgreSQL. */
  readonly source: string;
  readonly name: string;
  readonly type: string;
}

const types: Readonly<Record<string, string>> = { TEXT: "text", INTEGER: "bigint", BLOB: "bytea" };

/** The columns of the file, which has the newest schema. */
function columnsOf(file: Database, table: string): Column[] {
  const columns = file
    .query<{ name: string; type: string }, [string]>("SELECT name, type FROM pragma_table_info(?)")
    .all(table)
    // Quoted, because `user` means something else in PostgreSQL.
    .map(({ name, type }) => ({ source: `"${name}"`, name: `"${name}"`, type: types[type] ?? "" }));
  // Says which of two tokens made in the same millisecond came first.
  const position = { source: "rowid", name: "position", type: "bigint" };
  return table === "tokens" ? [...columns, position] : columns;
}

async function readTable(
  client: ClientBase,
  table: string,
  file: Database,
  signal: AbortSignal,
): Promise<void> {
  const columns = columnsOf(file, table);
  const insert = file.query(
    `INSERT INTO ${table} (${columns.map(({ source }) => source)})
       VALUES (${columns.map(() => "?")})`,
  );
  const names = columns.map(({ name }) => name);
  const keyLength = table === "tokens" || table === "gardens" ? 1 : 2;
  // In key order, which SQLite stores fastest.
  await client.query(
    `DECLARE rows NO SCROLL CURSOR FOR
       SELECT ${names} FROM ${table} ORDER BY ${names.slice(0, keyLength)}`,
  );
  for (;;) {
    const { rows } = await client.query({
      text: `FETCH ${batchRows} FROM rows`,
      rowMode: "array",
    });
    signal.throwIfAborted();
    for (const row of rows as SQLQueryBindings[][]) insert.run(...row);
    if (rows.length < batchRows) break;
  }
  await client.query("CLOSE rows");
}

async function fillTable(
  client: ClientBase,
  table: string,
  file: Database,
  signal: AbortSignal,
): Promise<void> {
  const columns = columnsOf(file, table);
  const arrays = columns.map(({ type }, index) => `$${index + 1}::${type}[]`);
  const insert = `INSERT INTO ${table} (${columns.map(({ name }) => name)})
    SELECT * FROM unnest(${arrays})`;
  const select = file.query(`SELECT ${columns.map(({ source }) => source)} FROM ${table}`);
  let batch: unknown[][] = [];
  const flush = async () => {
    signal.throwIfAborted();
    const values = columns.map((_, index) => batch.map((row) => row[index]));
    batch = [];
    await client.query(insert, values).catch((cause) => {
      if (!hasState(cause, "22", "54")) throw cause;
      const message = `PostgreSQL can't store some rows of ${table}. No version of the service writes such rows.`;
      throw new PlantStoreError("conflict", message, { cause });
    });
  };
  for (const row of select.iterate()) {
    batch.push(Object.values(row as object));
    if (batch.length === batchRows) await flush();
  }
  if (batch.length > 0) await flush();
}

/** Later tokens get higher positions. */
async function fillTokenChanges(client: ClientBase, file: Database): Promise<void> {
  const row = file
    .query<{ count: bigint }, []>("SELECT max(count) AS count FROM token_changes")
    .get();
  await client.query(
    `INSERT INTO token_changes (one, count)
       SELECT 1, greatest($1::bigint, coalesce(max(position), 0::bigint)) + 1 FROM tokens
       ON CONFLICT (one) DO UPDATE SET count = excluded.count`,
    [row?.count ?? 0n],
  );
}

async function requireEmpty(client: ClientBase, url: string): Promise<void> {
  const found = tables.map((table) => `EXISTS (SELECT 1 FROM ${table})`).join(" OR ");
  const { rows } = await client.query(`SELECT ${found} AS is_used`);
  if (rows[0]?.is_used !== true) return;
  throw new PlantStoreError(
    "conflict",
    `${maskUrl(url)} is not empty. Use a new database, and serve that one.`,
  );
}
