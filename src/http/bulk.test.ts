/** Bulk requests: where a line ends, and how much is done and held at a time. */
import { describe, expect, test } from "bun:test";
import type { NumberedDraft } from "../domain/plants.ts";
import { Bulk, lineCharactersMax, linesMax, linesOf, validateLine } from "./bulk.ts";

describe("the lines of a body", () => {
  test.each<[text: string, lines: string[]]>([
    ["", [""]],
    ["\n", [""]],
    ["\n\n", ["", ""]],
    ["a", ["a"]],
    ["a\n", ["a"]],
    ["a\n\n", ["a", ""]],
    ["a\r\n\u2028b", ["a\r", "\u2028b"]],
  ])("%j are %j", async (text, lines) => {
    expect([...linesOf(text)]).toEqual(lines);
    expect((await resultsOf(new Bulk(text))).trimEnd().split("\n")).toHaveLength(lines.length);
  });

  test.each(["", "\n"])("are at most 10,000, with %j at the end", (end) => {
    const text = (count: number) => Array.from({ length: count }, () => "x").join("\n") + end;
    new Bulk(text(linesMax));
    expect(() => new Bulk(text(linesMax + 1))).toThrow("Send at most 10000 lines.");
    expect(() => new Bulk(text(linesMax * 2))).toThrow("Send at most 10000 lines.");
  });

  test.each([
    ["", "is empty."],
    ["\r", "is empty."],
    ["[]", "must be one JSON object."],
    ['{"name":"Fern",}', "is not valid JSON."],
    ['\ufeff{"name":"Fern"}', "must be one JSON object, without a byte order mark before it."],
    [
      '{"name":"Fern"}'.padEnd(lineCharactersMax + 1),
      `must have at most ${lineCharactersMax} characters.`,
    ],
  ])("%j is refused: it %s", (line, reason) => {
    expect(validateLine(line)).toEqual([{ pointer: "", detail: `The line ${reason}` }]);
  });

  test("may be as long as the longest plant, with each character escaped", () => {
    const escaped = (count: number) => "\\ud83c\\udf3f".repeat(count);
    const line = `{"name":"${escaped(200)}","tag":"${escaped(100)}","id":-9223372036854775808}`;
    expect(line.length).toBeLessThan(lineCharactersMax);
    expect(validateLine(line)).toMatchObject({ tag: "🌿".repeat(100) });
  });
});

test.each([
  ["empty lines", "\n".repeat(linesMax), 100],
  ["long lines", `{"x":"${"x".repeat(4_000)}"}\n`.repeat(260), 20],
])("the thread is given back while %s are read, and while they are sent", async (_, text, min) => {
  const bulk = new Bulk(text);
  let turns = 0;
  for await (const _ of bulk.readSlices(async () => void turns++));
  expect(turns).toBeGreaterThan(min);
  const body = bulk.renderResults();
  if (typeof body === "string") throw new Error("It is sent whole.");
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
    expect(chunk.length).toBeLessThan(20_000);
  }
});

test("a line lists ten errors and says how many more there are", async () => {
  const members = Array.from({ length: 50 }, (_, index) => `"${index}${"x".repeat(9)}":1`);
  const result = JSON.parse(await resultsOf(new Bulk(`{"name":"a",${members}}`)));
  expect(result.errors).toHaveLength(10);
  expect(result.detail).toEndWith("(and 49 more; see errors).");
});

test("refusals for the same reason are kept once, and an id has all its digits", async () => {
  const bulk = new Bulk("{}\n".repeat(5));
  const line = (number: number): NumberedDraft => {
    return { line: number, draft: { name: "Fern", tag: "", id: 2n ** 63n - 1n } };
  };
  bulk.note(line(0), { kind: "created", id: 2n ** 63n - 1n, replayed: false });
  bulk.note(line(1), { kind: "created", id: -5n, replayed: true });
  bulk.note(line(2), { kind: "taken" });
  bulk.note(line(3), { kind: "mismatch" });
  bulk.note(line(4), { kind: "mismatch" });
  const results = (await resultsOf(bulk)).trimEnd().split("\n");
  expect(results.slice(0, 3)).toEqual([
    '{"status":201,"id":9223372036854775807}',
    '{"status":201,"id":-5,"replayed":true}',
    '{"status":409,"code":"conflict","detail":"A plant with the id 9223372036854775807 already exists."}',
  ]);
  expect(results[3]).toContain('"status":422');
  expect(results[4]).toBe(results[3] as string);
});

async function resultsOf(bulk: Bulk): Promise<string> {
  const body = bulk.renderResults();
  if (typeof body === "string") return body;
  let text = "";
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) text += chunk;
  return text;
}
