/**
 * `npm run release:keep-data`: stores data of every kind as this version writes them, so that later
 * versions can be tested with them: a SQLite file with a log that holds the last writes, a PostgreSQL
 * database as statements, and what callers received.
 */
import { Database } from "bun:sqlite";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import schema from "../../src/storage/postgres/migrations/schema-7.sql" with { type: "text" };
import { makeDatabase, type TestDatabase } from "../../testing/postgres-server.ts";
import { makeToken, revokeTokens, startService } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const { version } = manifest;
/** Far enough away for a test of any day. */
const neverMs = Date.parse("2999-01-01T00:00:00Z");

const timesOfKeys = `UPDATE idempotency_keys SET expires_at_ms = ${neverMs}`;
const timeOfToken = "UPDATE tokens SET expires_at_ms = 1 WHERE note = 'expired'";

using folder = makeTemporaryFolder();
const file = join(folder.path, "plants.db");
const server = await makeDatabase();
const home = join(import.meta.dir, "versions", version);
rmSync(home, { recursive: true, force: true });
mkdirSync(home, { recursive: true });

const answers = { sqlite: await fill(file), postgres: await fill(server.url) };
await Bun.write(join(home, "answers.json"), `${JSON.stringify(answers, null, 2)}\n`);
await Bun.write(join(home, "postgres.sql"), await renderStatements(server));
await server.drop();
process.stdout.write(`test/upgrades/versions/${version}: kept\n`);
process.exit(0);

export type KeptAnswers = Awaited<ReturnType<typeof fill>>;

/** Through the real program, as a user would. */
async function fill(database: string) {
  const make = (...flags: string[]) => makeToken({ database }, "ada", ...flags);
  const token = await make("--note", "kept");
  const readToken = await make("--scope", "read");
  const expiredToken = await make("--expires", "2999-01-01", "--note", "expired");
  const revokedToken = await makeToken({ database }, "eve", "--garden", "ada");
  await revokeTokens({ database }, "eve");
  await using service = await startService({ database });
  const create = async (body: string, headers: Record<string, string> = {}) => {
    const response = await service.call("POST /plants", { token, body, headers });
    if (response.status !== 201) throw new Error(`${body}: ${response.status}`);
    return response.headers.get("location") ?? "";
  };
  for (const id of ["-9223372036854775808", "0", "7", "9007199254740993", "9223372036854775807"]) {
    await create(`{"id":${id},"name":"Plant ${id}","tag":"chosen"}`);
  }
  const body = '{"name":"Größe 🌱","tag":""}';
  const key = "kept";
  // So that the log holds only what follows.
  if (database === file) changeFile("PRAGMA wal_checkpoint(TRUNCATE)");
  const location = await create(body, { "Idempotency-Key": key });
  await service.call(`DELETE ${await create('{"name":"gone"}')}`, { token });
  const plants = await (await service.call("GET /plants?include=id", { token })).text();
  if (database === file) keepFile();
  service.signal("SIGTERM");
  await service.exited;
  return { token, readToken, expiredToken, revokedToken, plants, keyed: { key, body, location } };
}

function changeFile(...statements: readonly string[]): void {
  using database = new Database(file, { readwrite: true });
  for (const statement of statements) database.run(statement);
}

/** With its log, which holds the last writes: it is folded into the file when the service ends. */
function keepFile(): void {
  changeFile(timesOfKeys, timeOfToken);
  for (const suffix of ["", "-wal"]) {
    copyFileSync(file + suffix, join(home, `plants.db${suffix}`));
  }
}

/** The newest schema without its comments, and then every row. */
async function renderStatements(database: TestDatabase): Promise<string> {
  await database.query(timesOfKeys);
  await database.query(timeOfToken);
  const statements = [
    "CREATE TABLE plantstore_schema (one bigint NOT NULL PRIMARY KEY, version bigint NOT NULL);",
    schema.replaceAll(/^(?:--.*)?\n/gm, "").trimEnd(),
    "DELETE FROM token_changes;",
  ];
  const columns = await database.query(
    `SELECT table_name, string_agg(quote_ident(column_name), ', ') AS names,
         string_agg(format('quote_nullable(%I)', column_name), $$ || ', ' || $$) AS quoted
       FROM information_schema.columns WHERE table_schema = 'public' GROUP BY table_name`,
  );
  for (const { table_name: table, names, quoted } of columns) {
    const rows = await database.query(`SELECT ${quoted} AS row FROM ${table} ORDER BY 1`);
    for (const { row } of rows) statements.push(`INSERT INTO ${table} (${names}) VALUES (${row});`);
  }
  return `${statements.join("\n")}\n`;
}
