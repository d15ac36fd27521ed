/** More requests than the service can take while its storage is stalled. */
import { expect, test } from "bun:test";
import { startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { flood, stallPostgres, stallSqlite } from "./flood.ts";

const args = ["--threads", "1"];

test("a flood of creates on a locked SQLite file is bounded, and leaves exactly what was confirmed", async () => {
  await using service = await startService({ args });
  expect(await flood(service, () => stallSqlite(service.database))).toEqual([]);
}, 120_000);

test("so is a flood on a locked PostgreSQL table", async () => {
  await using database = await makeDatabase();
  await using service = await startService({ args, database: database.url });
  expect(await flood(service, () => stallPostgres(database.url))).toEqual([]);
}, 120_000);
