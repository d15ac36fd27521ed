/** The storage contract behind a pooler in transaction mode: nothing rests on a session. */
import { expect, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase } from "../../../test/postgres-server.ts";
import { describeStorage } from "../../../test/storage-contract/storage-contract.ts";
import { startPooler } from "../../../test/transaction-pooler.ts";
import { openPostgres } from "./engine.ts";

async function makePooled() {
  const database = await makeDatabase();
  const pooler = await startPooler(database.url);
  const url = `postgres://anyone@127.0.0.1:${pooler.port}/${database.name}`;
  return {
    url,
    async remove() {
      await pooler.stop();
      await database.drop();
    },
  };
}

describeStorage("PostgreSQL behind a pooler", async () => {
  const pooled = await makePooled();
  const storage = await openPostgres(pooled.url, { isServing: true });
  return {
    storage,
    openAgain: () => openPostgres(pooled.url, { isServing: false }),
    async remove() {
      await storage.close();
      await pooled.remove();
    },
  };
});

test("the pooler keeps no session, so that the above means something", async () => {
  const pooled = await makePooled();
  const client = new Client(pooled.url);
  await client.connect();
  await client.query("SET search_path = nowhere");
  const { rows } = await client.query("SHOW search_path");
  expect(rows[0].search_path).not.toBe("nowhere");
  await client.query("BEGIN");
  const processes = ["one", "two"].map(() => client.query("SELECT pg_backend_pid() AS pid"));
  const [first, second] = await Promise.all(processes);
  expect(first?.rows).toEqual(second?.rows);
  await client.query("COMMIT");
  await client.end();
  await pooled.remove();
});
