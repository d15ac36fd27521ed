/**
 * What a service finds around its tables: settings of the role and the database, and what other
 * roles have put there.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, created } from "../../../test/storage-contract/tested-storage.ts";
import type { Storage } from "../../domain/storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(60_000);

let database: TestDatabase;

beforeEach(async () => {
  database = await makeDatabase();
});

afterEach(() => database.drop());

function open(url = database.url): Promise<Storage> {
  return openPostgres(url, { isServing: true });
}

/** Why it cannot be opened. */
async function refusal(url?: string): Promise<string> {
  const failure = await open(url).catch((error) => error);
  return failure.message;
}

describe.each([
  ["synchronous_commit", "off"],
  ["client_min_messages", "error"],
])("where %s is %s, answered writes could be lost", (name, value) => {
  const settle = () => database.query(`ALTER DATABASE ${database.name} SET ${name} = ${value}`);

  test("so no service starts", async () => {
    await settle();
    expect(await refusal()).toContain(`its ${name} is ${value}, so that answered writes could`);
  });

  test("so no connection is used that is made under it", async () => {
    const storage = await open();
    await settle();
    await database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plantstore'
         AND datname = current_database()`,
    );
    const failure = await storage.apply([create()]).catch((error) => error);
    expect(failure).toMatchObject({ code: "unavailable" });
    await database.query(`ALTER DATABASE ${database.name} RESET ${name}`);
    expect(await waitFor(() => storage.apply([create()]).catch(() => undefined))).toEqual([
      created(1n),
    ]);
    await storage.close();
  });
});
