/** Which words are near a mistyped one, and which are too far. */
import { expect, test } from "bun:test";
import { findTypos, suggest } from "./suggestion.ts";

const known = ["serve", "token", "import", "export", "port", "log"];

test.each(["", "x", "grow", "lxx", "xxxxrt"])("%p is near nothing", (typed) => {
  expect(suggest(typed, known)).toEqual([]);
});

test("finds variables with a typo, and no others", () => {
  const settings = ["PLANTSTORE_PORT", "PLANTSTORE_DATABASE", "PLANTSTORE_HOST"];
  const find = (...variables: string[]) => findTypos(variables, settings);
  expect(find("PLANTSTORE_PROT", "PLANTSTORE_DATABSE")).toEqual([
    { variable: "PLANTSTORE_PROT", meant: "PLANTSTORE_PORT" },
    { variable: "PLANTSTORE_DATABSE", meant: "PLANTSTORE_DATABASE" },
  ]);
  expect(find(...settings)).toEqual([]);
  // As Kubernetes names a service's variables, and an unrelated one.
  expect(find("PLANTSTORE_SERVICE_HOST", "PLANTSTORE_PORT_80_TCP", "PROT", "PATH")).toEqual([]);
});
