/**
 * Copies a file as it is at one moment into another one, while a service goes on writing to it. It
 * takes all tables of whatever schema, so it can also be done before an upgrade.
 */
import { type Database, SQLiteError, type SQLQueryBindings } from "bun:sqlite";
import { statSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import type { SnapshotCopy, Use } from "../backup.ts";
import type { Tally } from "../copy.ts";
import { applicationId, connect, countRows, readPragma } from "./connection.ts";
import { translate } from "./failure.ts";
import { checkLog, checkUnsealed } from "./first-look.ts";
import { checkFile } from "./migrate.ts";
import { checkUnmoved, explainOpening, locate } from "./opening.ts";

/** A few tens of milliseconds of work, after which signals and progress have their turn. */
const batchRows = 20_000;

export async function copySqlite<Result>(
  path: string,
  targetPath: string,
  use: Use<SnapshotCopy, Result>,
): Promise<Result> {
  const database = open(path);
  try {
    attach(database, targetPath);
    // What is read from here on is of one moment. Writers do not wait for readers.
    database.run("BEGIN");
    const tables = makeTables(database);
    const result = await use({
      async copy(tally, signal) {
        tally.plantsInAll = countRows(database, "main", "plants");
        for (const table of tables) await copyTable(database, table, tally, signal);
      },
      async compare(tally, signal) {
        tally.plantsInAll = countRows(database, "main", "plants");
        for (const table of tables) await compareTable(database, table, tally, signal);
        return {
          plants: countRows(database, "backup", "plants"),
          tokens: countRows(database, "backup", "tokens"),
        };
      },
    });
    database.run("COMMIT");
    return result;
  } catch (error) {
    throw explainCopying(path, error);
  } finally {
    database.close();
  }
}

function explainCopying(path: string, cause: unknown): unknown {
  const code = cause instanceof SQLiteError ? (cause.code ?? "") : "";
  if (code.startsWith("SQLITE_CORRUPT")) {
    return new PlantStoreError("unavailable", `Cannot copy ${path}: it is damaged.`, { cause });
  }
  // The file itself is only read. Beyond a limit of the size of files, there is no room either.
  if (code.startsWith("SQLITE_IOERR_WRITE")) {
    return new PlantStoreError("storage-full", "There is no room for the copy.", { cause });
  }
  return translate(cause);
}

function open(path: string): Database {
  try {
    const file = locate(path, { mustExist: true });
    checkLog(file);
    const identity = statSync(file);
    const database = connect(file);
    try {
      checkFile(database);
      checkUnmoved(file, identity);
      checkUnsealed(database, file);
      if (readPragma(database, "user_version") > 0n) return database;
      throw new PlantStoreError("unavailable", "it holds no plant store yet");
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    throw explainOpening(path, error);
  }
}

/** Nothing of the copy needs to last before it is whole: it is synced then, at once. */
function attach(database: Database, targetPath: string): void {
  database.query("ATTACH ? AS backup").run(targetPath);
  database.run("PRAGMA backup.journal_mode = OFF");
  database.run("PRAGMA backup.synchronous = OFF");
}

/** SQLite keeps what made a table or an index with these words at its beginning. */
const making = /^CREATE (?:TABLE|INDEX|UNIQUE INDEX) /;

interface CopiedTable {
  readonly name: string;
  /** The name as SQL has it. */
  readonly quoted: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
}

function makeTables(database: Database): CopiedTable[] {
  const made = database
    .query<{ type: string; name: string; sql: string }, []>(
      `SELECT type, name, sql FROM main.sqlite_schema
         WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid`,
    )
    .all()
    // Views and triggers are no data; those that an operator has added are left out.
    .filter(({ sql }) => making.test(sql));
  // Not by `run`, which goes on with what stands behind the first statement: whoever can write the
  // file could have put there what they like, for root to do.
  for (const { sql } of made) database.query(sql.replace(making, "$&backup.")).run();
  const schema = readPragma(database, "main.user_version");
  database.run(`PRAGMA backup.user_version = ${schema}`);
  database.run(`PRAGMA backup.application_id = ${applicationId}`);
  return made.filter(({ type }) => type === "table").map(({ name }) => describe(database, name));
}

/** The number of a row is kept where there is one: it tells the order of tokens. */
function describe(database: Database, name: string): CopiedTable {
  const columns = database
    .query<{ name: string; pk: bigint }, [string]>(
      "SELECT name, pk FROM pragma_table_info(?, 'main') ORDER BY pk",
    )
    .all(name);
  const isNumbered =
    database
      .query<{ wr: bigint }, [string]>(
        "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?",
      )
      .get(name)?.wr === 0n;
  const names = columns.map((column) => quote(column.name));
  const key = columns.filter(({ pk }) => pk > 0n).map((column) => quote(column.name));
  const quoted = quote(name);
  return isNumbered
    ? { name, quoted, columns: ["rowid", ...names], key: ["rowid"] }
    : { name, quoted, columns: names, key };
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

async function copyTable(
  database: Database,
  table: CopiedTable,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  const into = `INSERT INTO backup.${table.quoted} (${table.columns})`;
  for await (const after of findBatches(database, table, signal)) {
    const { changes } = database.query(`${into} ${batch(table, "main", after)}`).run(...after);
    if (table.name === "plants") tally.plants += changes;
  }
}

async function compareTable(
  database: Database,
  table: CopiedTable,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  const rows = countRows(database, "main", table.quoted);
  let isSame = countRows(database, "backup", table.quoted) === rows;
  for await (const after of findBatches(database, table, signal)) {
    const [original, copied] = [batch(table, "main", after), batch(table, "backup", after)];
    const missing = `SELECT 1 FROM (SELECT * FROM (${original}) EXCEPT SELECT * FROM (${copied}))`;
    isSame &&= database.query(missing).get(...after, ...after) === null;
    if (table.name === "plants") tally.plants = Math.min(rows, tally.plants + batchRows);
  }
  if (!isSame) throw new PlantStoreError("internal", `The copy differs in its ${table.name}.`);
}

/** The key before each batch; of the first one, none. */
async function* findBatches(
  database: Database,
  table: CopiedTable,
  signal: AbortSignal,
): AsyncGenerator<SQLQueryBindings[], void, undefined> {
  const { quoted, key } = table;
  let after: SQLQueryBindings[] = [];
  for (;;) {
    yield after;
    // SQLite never waits, and then no signal or timer would have its turn.
    await new Promise(setImmediate);
    signal.throwIfAborted();
    const last = database
      .query<Record<string, SQLQueryBindings>, SQLQueryBindings[]>(
        `SELECT ${key} FROM main.${quoted} ${behind(table, after)}
           ORDER BY ${key} LIMIT 1 OFFSET ${batchRows - 1}`,
      )
      .get(...after);
    if (last === null) return;
    after = Object.values(last);
  }
}

function batch(table: CopiedTable, schema: "main" | "backup", after: readonly unknown[]): string {
  const { quoted, columns, key } = table;
  return `SELECT ${columns} FROM ${schema}.${quoted} ${behind(table, after)}
    ORDER BY ${key} LIMIT ${batchRows}`;
}

function behind({ key }: CopiedTable, after: readonly unknown[]): string {
  return after.length === 0 ? "" : `WHERE (${key}) > (${key.map(() => "?")})`;
}
