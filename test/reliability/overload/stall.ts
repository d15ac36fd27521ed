/** Holds up every write to a storage, while reads go on, for as long as it is held. */
import { Database } from "bun:sqlite";
import { Client } from "pg";

export interface Stall {
  release(): Promise<void>;
}

/** As a command that writes for long beside the service, or a disk that does not answer. */
export async function stallSqlite(file: string): Promise<Stall> {
  const database = new Database(file, { create: false, readwrite: true });
  database.run("BEGIN IMMEDIATE");
  return {
    async release() {
      database.run("ROLLBACK");
      database.close();
    },
  };
}

/** As a migration or a careless session does. */
export async function stallPostgres(url: string): Promise<Stall> {
  const client = new Client(url);
  await client.connect();
  await client.query("BEGIN");
  await client.query("LOCK TABLE plants IN EXCLUSIVE MODE");
  return { release: () => client.end() };
}
