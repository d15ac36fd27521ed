/** More requests than the service can take while its storage is stalled. */
import { expect, test } from "bun:test";
import { startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { flood, stallPostgres, stallSqlite } from "./flood.ts";

const args = ["--threads", "1"];

test("a flood of creates on a locked SQLite file is bounded, and leaves exactly what was confirmed", async () => {
  await using service = await startService({ args });
  const { faults } = await flood(service, () => stallSqlite(service.database));
  expect(faults).toEqual([]);
}, 120_000);

test("so is a flood on a locked PostgreSQL table", async () => {
  const database = await makeDatabase();
  {
    await using service = await startService({ args, database: database.url });
    const { faults } = await flood(service, () => stallPostgres(database.url));
    expect(faults).toEqual([]);
  }
  await database.drop();
}, 120_000);
