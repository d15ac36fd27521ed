/** JSON Lines: where a line ends, how many there may be, and what each result looks like. */
import { describe, expect, test } from "bun:test";
import { PlantStoreError } from "../domain/errors.ts";
import { plantDraftSchema } from "../domain/plant.ts";
import { linesMax, renderResults, splitLines, validateLines } from "./lines.ts";

describe("the lines of a body", () => {
  test.each<[text: string, lines: string[]]>([
    ["", [""]],
    ["\n", [""]],
    ["\n\n", ["", ""]],
    ["a", ["a"]],
    ["a\n", ["a"]],
    ["a\n\n", ["a", ""]],
    ["a\r\n\u2028b", ["a\r", "\u2028b"]],
  ])("%j are %j", (text, lines) => {
    expect(splitLines(text)).toEqual(lines);
  });

  test.each(["", "\n"])("are at most 10,000, with %j at the end", (end) => {
    const text = (count: number) => Array.from({ length: count }, () => "x").join("\n") + end;
    expect(splitLines(text(linesMax)).length).toBe(10_000);
    expect(() => splitLines(text(linesMax + 1))).toThrow("Send at most 10000 lines.");
    expect(() => splitLines(text(linesMax * 2))).toThrow("Send at most 10000 lines.");
  });

  test.each([
    ["", "is empty."],
    ["\r", "is empty."],
    ["[]", "must be one JSON object."],
    ['{"name":"Fern",}', "is not valid JSON."],
    ['\ufeff{"name":"Fern"}', "must be one JSON object, without a byte order mark before it."],
  ])("%j is refused: it %s", (line, reason) => {
    const [result] = validateLines(plantDraftSchema, [line]);
    expect(result).toMatchObject({ message: `The line ${reason}` });
  });

  test("are validated one by one, as they are taken", () => {
    const drafts = validateLines(plantDraftSchema, ['{"name":"Fern"}', "{", "[]"]);
    const [first, second] = drafts;
    expect(first).toEqual({ name: "Fern", tag: "" });
    expect(second).toMatchObject({
      code: "invalid-request",
      errors: [{ pointer: "", detail: "The line is not valid JSON." }],
    });
  });
});

test("a result has the id with all its digits, or the problem without what only requests have", () => {
  const errors = [{ pointer: "/name", detail: "is required." }];
  const fern = { id: 2n ** 63n - 1n, name: "Fern", tag: "" };
  const results = [
    { ...fern, replayed: false },
    { ...fern, replayed: true },
    new PlantStoreError("conflict", "It is there."),
    new PlantStoreError("invalid-request", "name is required.", { errors }),
  ];
  expect(renderResults(results).split("\n")).toEqual([
    '{"status":201,"id":9223372036854775807}',
    '{"status":201,"id":9223372036854775807,"replayed":true}',
    '{"status":409,"code":"conflict","detail":"It is there."}',
    `{"status":400,"code":"invalid-request","detail":"name is required.","errors":${JSON.stringify(errors)}}`,
    "",
  ]);
});
