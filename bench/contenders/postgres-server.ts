/**
 * The PostgreSQL server of a run, with its defaults, so a commit is on disk before it is confirmed.
 * It starts when a scenario first needs it.
 */
import { Client } from "pg";
import { makeDatabase, type PostgresServer, startPostgres } from "../../test/postgres-server.ts";

let server: PostgresServer | undefined;

export async function makeServerDatabase(): Promise<string> {
  server ??= await startPostgres();
  return (await makeDatabase(server)).url;
}

export function serverPid(): number | undefined {
  return server?.pid;
}

export async function readServerVersion(): Promise<string | undefined> {
  if (!server) return undefined;
  const [row] = await query(server.url("postgres"), ["SHOW server_version"]);
  return String(row?.server_version);
}

/** Autovacuum would otherwise come in the middle of a round. */
export async function changeDatabase(url: string, statements: readonly string[]): Promise<void> {
  await query(url, [...statements, "VACUUM ANALYZE"]);
}

export async function dropDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  await query(server?.url("postgres") ?? url, [`DROP DATABASE ${name} WITH (FORCE)`]);
}

export async function stopServer(): Promise<void> {
  await server?.stop();
  server = undefined;
}

/** Returns the rows of the last statement. */
async function query(url: string, statements: readonly string[]) {
  const client = new Client(url);
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) rows = (await client.query(statement)).rows;
    return rows;
  } finally {
    await client.end();
  }
}
