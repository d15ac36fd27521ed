/** What PostgreSQL reports, and which error of the domain it becomes. */
import { expect, test } from "bun:test";
import { DatabaseError } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { ConnectionLost, isOutcomeUnknown, mapError, needsNewConnection } from "./errors.ts";

function reported(state: string): DatabaseError {
  const error = new DatabaseError("secret", 0, "error");
  error.code = state;
  return error;
}

test.each([
  ["a full disk", "53100", "storage-full"],
  ["no connection left", "53300", "unavailable"],
  ["a lock that was not got", "55P03", "unavailable"],
  ["a serialization failure", "40001", "unavailable"],
  ["a statement that took too long", "57014", "unavailable"],
  ["a shutdown", "57P01", "unavailable"],
  ["a lost connection", "08006", "unavailable"],
  ["a transaction that took too long", "25P04", "unavailable"],
  ["a failure of the disk", "58030", "unavailable"],
  ["damaged data", "XX001", "unavailable"],
  ["missing rights", "42501", "unavailable"],
  ["a server that is read-only", "25006", "unavailable"],
])("%s (%s) is %s, without its message", (_, state, code) => {
  const error = reported(state);
  const shown = mapError(error) as PlantStoreError;
  expect(shown).toMatchObject({ code, cause: error });
  expect(shown.message).not.toContain("secret");
});

test.each([
  ["a bug", reported("23505")],
  ["an expected failure", new PlantStoreError("conflict", "x")],
  ["an error of the system with the same code", Object.assign(new Error("x"), { code: "53100" })],
])("%s stays as it is", (_case, thrown) => {
  expect(mapError(thrown)).toBe(thrown);
});

test("a lost connection is unavailable, and so is a read-only server", () => {
  expect(mapError(new ConnectionLost("x"))).toMatchObject({ code: "unavailable" });
  expect(needsNewConnection(reported("25006"))).toBe(true);
});

test("whether a commit may have happened is known only if the server reported its failure", () => {
  const unknown = ["57P01", "57P02", "08006", "40003", "XX000", "58030"];
  const certain = ["23505", "40001", "40P01", "53100", "25006", "57014"];
  const states = [...unknown, ...certain];
  expect(states.filter((state) => isOutcomeUnknown(reported(state)))).toEqual(unknown);
  expect(isOutcomeUnknown(new ConnectionLost("x"))).toBe(true);
});
