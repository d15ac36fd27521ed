/** What PostgreSQL really reports, and what the domain is told of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { PlantStoreError } from "../../domain/errors.ts";
import { ConnectionLost, isDoubtful, isLost, mapError } from "./errors.ts";

let database: TestDatabase;
let client: Client;

beforeAll(async () => {
  database = await makeDatabase();
  client = new Client(database.url);
  await client.connect();
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

/** The error of a statement that the server refuses. */
async function reported(text: string): Promise<Error> {
  const outcome = await client.query(text).catch((error) => error);
  if (!(outcome instanceof Error)) throw new Error("Nothing was thrown.");
  return outcome;
}

function raise(state: string): Promise<Error> {
  return reported(`DO $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '${state}'; END $$`);
}

describe("what the server reports", () => {
  test.each([
    ["a full disk", "53100", "storage-full"],
    ["a server without memory", "53200", "unavailable"],
    ["a server without a connection left", "53300", "unavailable"],
    ["a lock that was not got", "55P03", "unavailable"],
    ["a serialisation failure", "40001", "unavailable"],
    ["a deadlock", "40P01", "unavailable"],
    ["a server that goes down", "57P01", "unavailable"],
    ["a lost connection", "08006", "unavailable"],
    ["a transaction that idled too long", "25P03", "unavailable"],
    ["a transaction that took too long", "25P04", "unavailable"],
    ["a failure of the disk", "58030", "unavailable"],
    ["damaged data", "XX001", "unavailable"],
    ["missing rights", "42501", "unavailable"],
  ])("as %s (%s) is %s, in words that say nothing of the inside", async (_, state, code) => {
    const error = await raise(state);
    const shown = mapError(error) as PlantStoreError;
    expect(shown).toMatchObject({ code, cause: error });
    expect(shown.message).not.toContain("secret");
  });

  test("of a write to a read-only server is unavailable, and says that reading works", async () => {
    const error = await reported("BEGIN READ ONLY; CREATE TABLE x (y int)");
    await client.query("ROLLBACK");
    expect(mapError(error)).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("Reading still works"),
    });
    expect(isLost(error)).toBe(true);
  });

  test("of a statement that took too long is unavailable", async () => {
    const error = await reported("SET statement_timeout = 20; SELECT pg_sleep(10)");
    await client.query("RESET statement_timeout");
    expect(mapError(error)).toMatchObject({ code: "unavailable" });
  });

  test.each(["23505", "22001", "42601"])(
    "as %s stays as it is, because it is a bug",
    async (state) => {
      const error = await raise(state);
      expect(mapError(error)).toBe(error);
    },
  );
});

test.each([
  ["another error", new Error("53100")],
  ["an expected failure", new PlantStoreError("conflict", "x")],
  ["an error with a code of the same name", Object.assign(new Error("x"), { code: "53100" })],
  ["nothing", undefined],
])("%s stays as it is", (_case, thrown) => {
  expect(mapError(thrown)).toBe(thrown);
});

test("a lost connection is unavailable", () => {
  expect(mapError(new ConnectionLost("x"))).toMatchObject({ code: "unavailable" });
});

describe("whether a commit may have happened", () => {
  test.each(["23505", "40001", "40P01", "53100", "25006", "57014"])(
    "is not in doubt after %s",
    async (state) => {
      expect(isDoubtful(await raise(state))).toBe(false);
    },
  );

  test.each(["57P01", "57P02", "08006", "40003", "XX000", "58030"])(
    "is in doubt after %s",
    async (state) => {
      expect(isDoubtful(await raise(state))).toBe(true);
    },
  );

  test("is in doubt when the connection was lost", () => {
    expect(isDoubtful(new ConnectionLost("x"))).toBe(true);
  });
});
