/** Which words are near a mistyped one, and which are too far. */
import { expect, test } from "bun:test";
import { findTypos, renderSuggestion, suggest } from "./suggestion.ts";

const known = ["serve", "token", "import", "export", "port", "log"];

test.each([
  ["a letter left out", "serv", ["serve"]],
  ["a letter too many", "tokken", ["token"]],
  ["a wrong letter", "loh", ["log"]],
  ["two letters swapped", "prot", ["port"]],
  ["capitals", "PORT", ["port"]],
  ["two typos in six letters", "exxort", ["export"]],
  ["two words at the same distance", "mport", ["import", "port"]],
])("for %s there is a suggestion", (_case, typed, meant) => {
  expect(suggest(typed, known)).toEqual(meant);
});

test.each(["", "x", "grow", "lxx", "xxxxrt"])("%p is near nothing", (typed) => {
  expect(suggest(typed, known)).toEqual([]);
});

test("of no known words there is none", () => {
  expect(suggest("serve", [])).toEqual([]);
});

test("finds variables with a typo, and no others", () => {
  const settings = ["PLANTSTORE_PORT", "PLANTSTORE_DATABASE", "PLANTSTORE_HOST"];
  const find = (...variables: string[]) => findTypos(variables, settings);
  expect(find("PLANTSTORE_PROT", "PLANTSTORE_DATABSE")).toEqual([
    { variable: "PLANTSTORE_PROT", meant: "PLANTSTORE_PORT" },
    { variable: "PLANTSTORE_DATABSE", meant: "PLANTSTORE_DATABASE" },
  ]);
  expect(find(...settings)).toEqual([]);
  // As Kubernetes names those of a service, and what has nothing to do with it.
  expect(find("PLANTSTORE_SERVICE_HOST", "PLANTSTORE_PORT_80_TCP", "PROT", "PATH")).toEqual([]);
});

test("is a question, or nothing", () => {
  expect(renderSuggestion(["a", "b"])).toBe("Did you mean a or b? ");
  expect(renderSuggestion([])).toBe("");
});
