/** What PostgreSQL reports, and which error of the domain it becomes. */
import { describe, expect, test } from "bun:test";
import { DatabaseError } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { ConnectionLost, explain, isLost, isOutcomeUnknown, mapError } from "./errors.ts";
import { parseUrl } from "./url.ts";

function reported(state: string): DatabaseError {
  const error = new DatabaseError("secret", 0, "error");
  error.code = state;
  return error;
}

describe("what the server reports", () => {
  test.each([
    ["a full disk", "53100", "storage-full"],
    ["no memory left", "53200", "unavailable"],
    ["no connection left", "53300", "unavailable"],
    ["a lock that was not got", "55P03", "unavailable"],
    ["a serialisation failure", "40001", "unavailable"],
    ["a deadlock", "40P01", "unavailable"],
    ["a statement that took too long", "57014", "unavailable"],
    ["a shutdown", "57P01", "unavailable"],
    ["a lost connection", "08006", "unavailable"],
    ["a transaction that idled too long", "25P03", "unavailable"],
    ["a transaction that took too long", "25P04", "unavailable"],
    ["a failure of the disk", "58030", "unavailable"],
    ["damaged data", "XX001", "unavailable"],
    ["missing rights", "42501", "unavailable"],
    ["a server that is read-only", "25006", "unavailable"],
  ])("as %s (%s) is %s, without its message", (_, state, code) => {
    const error = reported(state);
    const shown = mapError(error) as PlantStoreError;
    expect(shown).toMatchObject({ code, cause: error });
    expect(shown.message).not.toContain("secret");
  });

  test.each(["23505", "22001", "42601"])("as %s stays as it is, because it is a bug", (state) => {
    const error = reported(state);
    expect(mapError(error)).toBe(error);
  });
});

test.each([
  ["another error", new Error("53100")],
  ["an expected failure", new PlantStoreError("conflict", "x")],
  ["an error of the system with the same code", Object.assign(new Error("x"), { code: "53100" })],
  ["nothing", undefined],
])("%s stays as it is", (_case, thrown) => {
  expect(mapError(thrown)).toBe(thrown);
});

test("a lost connection is unavailable, and so is a read-only server", () => {
  expect(mapError(new ConnectionLost("x"))).toMatchObject({ code: "unavailable" });
  expect(isLost(reported("25006"))).toBe(true);
});

describe("whether a commit may have happened", () => {
  test.each(["23505", "40001", "40P01", "53100", "25006", "57014"])(
    "is certain after %s: it has not",
    (state) => {
      expect(isOutcomeUnknown(reported(state))).toBe(false);
    },
  );

  test.each(["57P01", "57P02", "08006", "40003", "XX000", "58030"])(
    "is unknown after %s",
    (state) => {
      expect(isOutcomeUnknown(reported(state))).toBe(true);
    },
  );

  test("is unknown when the connection was lost", () => {
    expect(isOutcomeUnknown(new ConnectionLost("x"))).toBe(true);
  });
});

test("a connection that was cut without a password has the advice to set one", () => {
  const { PGPASSWORD } = process.env;
  delete process.env.PGPASSWORD;
  const lost = new ConnectionLost("No connection.", { cause: new Error("no password") });
  const advice = "set PGPASSWORD";
  expect(explain(lost, parseUrl("postgres://plants@db1/plants"))).toContain(advice);
  expect(explain(lost, parseUrl("postgres://plants:secret@db1/plants"))).not.toContain(advice);
  if (PGPASSWORD !== undefined) process.env.PGPASSWORD = PGPASSWORD;
});
