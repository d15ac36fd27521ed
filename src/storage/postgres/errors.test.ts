/** What PostgreSQL reports, and what follows from it. */
import { expect, test } from "bun:test";
import { DatabaseError } from "pg";
import { ConnectionLost, isOutcomeUnknown, mapError } from "./errors.ts";

function reported(state: string): DatabaseError {
  return Object.assign(new DatabaseError("secret", 0, "error"), { code: state });
}

test.each([
  ["a full disk", "53100", { code: "storage-full" }],
  ["a lock that was not got", "55P03", { code: "unavailable" }],
  ["a failure of the disk", "58030", { code: "unavailable" }],
  ["a bug", "23505", { code: "23505" }],
])("%s (%s) is %j, without the server's message", (_, state, expected) => {
  const error = reported(state);
  const shown = mapError(error) as Error;
  expect(shown).toMatchObject(expected);
  if (shown !== error) expect(shown.message).not.toContain("secret");
});

test("whether a commit may have happened is known only if the server reported its failure", () => {
  const unknown = ["57P01", "57P02", "08006", "40003", "XX000", "58030"];
  const certain = ["23505", "40001", "40P01", "53100", "25006", "57014"];
  const states = [...unknown, ...certain];
  expect(states.filter((state) => isOutcomeUnknown(reported(state)))).toEqual(unknown);
  expect(isOutcomeUnknown(new ConnectionLost("x"))).toBe(true);
});
