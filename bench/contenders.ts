/** Plant Store, and what you could use instead: how each is started, and filled with plants. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { hashToken, makeToken } from "../src/auth/opaque-token.ts";
import {
  makeDatabase,
  type PostgresServer,
  runStatement,
  startPostgres,
} from "../testing/postgres-server.ts";
import { type Command, run } from "./processes.ts";
import { type ActionName, firstNumber, tag } from "./requests.ts";

export type Engine = "sqlite" | "postgres";

/** Plants are numbered, and dealt to the gardens in turn. */
export interface Size {
  readonly gardens: number;
  readonly plants: number;
}

export interface Contender {
  readonly name: string;
  readonly title: string;
  readonly version: string;
  readonly summary: string;
  readonly engine: Engine;
  readonly instances: number;
  /** Absent: all. */
  readonly actions?: readonly ActionName[];
  readonly prepare: (directory: string, size: Size) => Promise<Data>;
  readonly toCommand: (database: string, port: number) => Command;
}

/** What the results say about it. */
export type ContenderInfo = Pick<Contender, "name" | "title" | "version" | "summary">;

export interface Data {
  /** The path of a file, or the address of a PostgreSQL database. */
  readonly database: string;
  /** One per garden, in order. */
  readonly tokens: readonly string[];
  /** Whether it's within a transaction. Absent: nobody else waits for its transactions. */
  readonly isInTransaction?: () => Promise<boolean>;
  readonly drop?: () => Promise<void>;
}

const rootDirectory = join(import.meta.dir, "..");

/**
 * In the order of the table's columns. Plant Store comes first, because `bare` repeats its
 * responses, and is there once for each engine.
 */
export async function makeContenders(previousPath: string | undefined): Promise<Contender[]> {
  const version = await readVersion(rootDirectory);
  const summary = "default settings, its JSON log on";
  const own = { name: "plant-store", title: "Plant Store", version, summary };
  const oneThread = { name: "one-thread", title: "one thread", version, summary: "--threads 1" };
  const ownOnPostgres = plantStore(own, rootDirectory, "postgres");
  const contenders = [
    plantStore(own, rootDirectory, "sqlite"),
    ownOnPostgres,
    plantStore(oneThread, rootDirectory, "sqlite", ["--threads", "1"]),
  ];
  if (previousPath !== undefined) {
    const older = await readVersion(previousPath);
    const previous = { ...own, name: "previous", title: older, version: older };
    // The same once more: what differs between these two is noise.
    const again = { ...previous, name: "previous-again", title: `${older} again` };
    for (const info of [previous, again]) {
      contenders.push(
        plantStore(info, previousPath, "sqlite"),
        plantStore(info, previousPath, "postgres"),
      );
    }
  }
  const node = (await run({ words: ["node", "--version"] })).trim();
  return [
    ...contenders,
    bare,
    await handWritten("Hono", "with its bearer and valibot middleware"),
    await handWritten("Elysia", "with its compiled schemas"),
    await handWritten("Fastify", `with better-sqlite3 on Node ${node}`, "node"),
    {
      ...ownOnPostgres,
      name: "one-insert",
      title: "one INSERT",
      version: `pg ${await readVersion(join(rootDirectory, "node_modules", "pg"))}`,
      summary: "one INSERT per request on PostgreSQL, ids from a sequence, few checks",
      actions: ["list", "create"],
      async prepare(directory, size) {
        const data = await ownOnPostgres.prepare(directory, size);
        const start = firstNumber + size.plants;
        await runStatement(data.database, `CREATE SEQUENCE plant_ids START ${start}`);
        return data;
      },
      toCommand: (database, port) => toServer("insert-server.ts", port, database),
    },
  ];
}

async function readVersion(packageDirectory: string): Promise<string> {
  return (await Bun.file(join(packageDirectory, "package.json")).json()).version;
}

function toServer(file: string, port: number, database: string, runtime = process.execPath) {
  const words = [runtime, join(import.meta.dir, "servers", file), String(port), database];
  return { words, environment: { NODE_ENV: "production" } };
}

let server: PostgresServer | undefined;

/** Started as its users start it. Its log goes to /dev/null. */
function plantStore(
  info: ContenderInfo,
  root: string,
  engine: Engine,
  flags: readonly string[] = [],
): Contender {
  const program = join(root, "bin", "plantstore");
  return {
    ...info,
    engine,
    // On PostgreSQL an instance has one thread by default.
    instances: engine === "postgres" ? 2 : 1,
    async prepare(directory, size) {
      const tokens = Array.from({ length: size.gardens }, (_, number) =>
        makeToken(`garden-${number}`),
      );
      // The command makes the tables. What they contain is inserted directly, to save time.
      const makeTables = (PLANTSTORE_DATABASE: string) =>
        run({ words: [program, "token", "create", "any"], environment: { PLANTSTORE_DATABASE } });
      if (engine === "sqlite") {
        const database = join(directory, "plants.db");
        await makeTables(database);
        changeFile(database, [tokensStatement(tokens), plantsStatement(size), gardensStatement]);
        return { database, tokens };
      }
      // With its defaults, so a commit is on disk before it is confirmed.
      server ??= await startPostgres();
      const { url, query, drop } = await makeDatabase(server);
      await makeTables(url);
      await query(tokensStatement(tokens, ", position"));
      await query(plantsStatement(size));
      await query(gardensStatement);
      // Autovacuum would otherwise come in the middle of a round. Not of tables that are still
      // empty: autovacuum wouldn't look at those either, and some plans for them are bad ones.
      await query("VACUUM ANALYZE tokens, plants, gardens");
      const isInTransaction = async () => {
        const [row] = await query(
          `SELECT count(*) AS sessions FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()
               AND backend_type = 'client backend' AND state <> 'idle'`,
        );
        return Number(row?.sessions) > 0;
      };
      return { database: url, tokens, isInTransaction, drop };
    },
    toCommand: (database, port) => ({
      words: [program, "serve", "--port", String(port), "--log", "json", ...flags],
      environment: { PLANTSTORE_DATABASE: database },
    }),
  };
}

/** PostgreSQL's table has one column more, with numbers. */
function tokensStatement(tokens: readonly string[], column = ""): string {
  const rows = tokens.map((token, index) => {
    const name = `garden-${index}`;
    const more = column && `, ${1_000 + index}`;
    return `('${name}', '${hashToken(token)}', '${name}', '${name}', 'write', '', 0${more})`;
  });
  return `INSERT INTO tokens (id, hash, "user", garden, scope, note, created_at_ms${column})
    VALUES ${rows.join(", ")}`;
}

function plantsStatement({ gardens, plants }: Size): string {
  return `
    INSERT INTO plants (garden, id, name, tag)
    WITH RECURSIVE numbers(number) AS (
      SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < ${plants - 1}
    )
    SELECT 'garden-' || (number % ${gardens}), ${firstNumber} + number,
        'Plant ' || (${firstNumber} + number), '${tag}'
      FROM numbers ORDER BY number % ${gardens}, number`;
}

const gardensStatement = `
  INSERT INTO gardens (garden, last_id, plants, keys)
  SELECT garden, max(id), count(*), 0 FROM plants GROUP BY garden`;

/** Nothing is synced, because no service has the file open yet. */
function changeFile(path: string, statements: readonly string[]): void {
  using database = new Database(path);
  database.run("PRAGMA synchronous = OFF");
  database.transaction(() => {
    for (const statement of statements) database.run(statement);
  })();
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
}

/** What a good engineer would write by hand: a framework with schemas, on SQLite. */
async function handWritten(title: string, what: string, runtime?: string): Promise<Contender> {
  const name = title.toLowerCase();
  return {
    name,
    title,
    version: await readVersion(join(import.meta.dir, "node_modules", name)),
    summary: `${what}; a cache of tokens, one durable commit per write, log off`,
    engine: "sqlite",
    instances: 1,
    actions: ["list", "list-uncached", "list-all", "create", "delete"],
    async prepare(directory, size) {
      const database = join(directory, "plants.db");
      const token = makeToken("garden-0");
      const hash = new Bun.SHA256().update(token).digest("hex");
      changeFile(database, [
        `CREATE TABLE plants (garden TEXT NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL,
          tag TEXT NOT NULL, PRIMARY KEY (garden, id)) WITHOUT ROWID`,
        "CREATE TABLE tokens (hash TEXT NOT NULL PRIMARY KEY, garden TEXT NOT NULL) WITHOUT ROWID",
        `INSERT INTO tokens VALUES ('${hash}', 'garden-0')`,
        plantsStatement(size),
      ]);
      return { database, tokens: [token] };
    },
    toCommand: (database, port) => toServer(`${name}-server.mjs`, port, database, runtime),
  };
}

/** The limit: the same runtime on one thread, with nothing to do. */
const bare: Contender = {
  name: "bare",
  title: "bare",
  version: `Bun ${Bun.version}`,
  summary: "one thread that repeats Plant Store's bytes: no token, no validation, no storage",
  engine: "sqlite",
  instances: 1,
  async prepare(directory) {
    const database = join(directory, "responses.json");
    await Bun.write(database, `{"GET":{"status":200,"headers":{},"body":"[]"}}`);
    return { database, tokens: ["none"] };
  },
  toCommand: (database, port) => toServer("bare-server.ts", port, database),
};
