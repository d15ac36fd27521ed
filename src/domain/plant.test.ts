/** What a validation error says. The limits themselves are rows of check/rows/plant.ts. */
import { expect, test } from "bun:test";
import * as v from "valibot";
import { plantDraftSchema, plantIdMax, plantIdMin } from "./plant.ts";

function errorsOf(input: unknown): string[] {
  const parsed = v.safeParse(plantDraftSchema, input, { abortPipeEarly: true });
  if (parsed.success) return [];
  return parsed.issues.map((issue) => `${issue.path?.[0]?.key ?? ""}: ${issue.message}`);
}

const tooLong = "name: must have at most 200 characters (Unicode code points)";

test.each<[input: unknown, ...errors: string[]]>([
  [{ name: `a${"🌱".repeat(199)}`, tag: "" }],
  [{ name: "a", id: plantIdMin }],
  [{ name: "a", id: plantIdMax }],
  [{ name: "" }, "name: must not be empty"],
  [{ name: "\t\n\r\u0085\u00a0\u2003\u3000\ufeff" }, "name: must not be only white space"],
  [{ name: "a".repeat(201) }, tooLong],
  [{ name: `${"a".repeat(200)}🌱` }, tooLong],
  [{ name: "a\0b" }, "name: must not contain the character U+0000"],
  [{ name: "a\ud83c" }, "name: must not contain a lone surrogate"],
  [{ tag: "x" }, "name: is required"],
  [{ name: "a", id: plantIdMin - 1n }, "id: must not be less than -9223372036854775808"],
  [{ name: "a", id: plantIdMax + 1n }, "id: must not be more than 9223372036854775807"],
  // A number was not parsed exactly.
  [{ name: "a", id: 7 }, "id: must be an integer"],
  [
    { name: null, tag: 1, id: "x" },
    "name: must be a string",
    "tag: must be a string",
    "id: must be an integer",
  ],
  [null, ": must be one JSON object"],
])("reports every validation error of a plant, case %#", (input, ...errors) => {
  expect(errorsOf(input)).toEqual(errors);
});
