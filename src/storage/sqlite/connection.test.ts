/** The settings that durability and exactness rest on. */
import { expect, test } from "bun:test";
import { makeEmptyFile, makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { connect, readPragma } from "./connection.ts";

test.each([
  ["synchronous", 2n],
  ["foreign_keys", 1n],
  ["busy_timeout", 5_000n],
])("every connection has %s set to %p", (pragma, value) => {
  using folder = makeTemporaryFolder();
  const database = connect(makeEmptyFile(folder.path));
  expect(readPragma(database, pragma)).toBe(value);
  database.close();
});

test("integers beyond 2^53 come back exactly", () => {
  using folder = makeTemporaryFolder();
  const database = connect(makeEmptyFile(folder.path));
  const row = database.query<{ id: bigint }, [bigint]>("SELECT ? AS id").get(2n ** 53n + 1n);
  expect(row?.id).toBe(2n ** 53n + 1n);
  database.close();
});
