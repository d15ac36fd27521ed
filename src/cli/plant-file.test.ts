/** Files of plants: every line a plant or a fault with its number, however the bytes arrive. */
import { describe, expect, test } from "bun:test";
import {
  chooseFormat,
  type Format,
  type PlantLine,
  readPlantLines,
  renderHeader,
  renderPlants,
} from "./plant-file.ts";

async function* inPieces(bytes: Uint8Array, pieceBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

/** The same, whatever the pieces. */
async function readAll(format: Format, text: string | Uint8Array): Promise<PlantLine[]> {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const results: PlantLine[][] = [];
  const smallest = bytes.length < 10_000 ? [1, 3] : [1_000];
  for (const pieceBytes of [...smallest, 64 * 1024, 10_000_000]) {
    const lines: PlantLine[] = [];
    for await (const line of readPlantLines(inPieces(bytes, pieceBytes), format)) lines.push(line);
    results.push(lines);
  }
  for (const result of results) expect(result).toEqual(results[0] ?? []);
  return results[0] ?? [];
}

describe("CSV", () => {
  test("has its columns in any order, with a byte order mark, CRLF and lines within fields", async () => {
    const text =
      '\uFEFFTag,ID, name\r\nshade,9007199254740993,"Fern, ""tall""\nand wide"\r\n\r\n,,盆栽';
    expect(await readAll("csv", text)).toEqual([
      { line: 2, draft: { name: 'Fern, "tall"\nand wide', tag: "shade", id: 9007199254740993n } },
      { line: 5, draft: { name: "盆栽", tag: "" } },
    ]);
  });

  test("tells what is wrong with a line, and goes on with the next", async () => {
    const lines = [
      "name,id",
      '5" pot,1',
      "Fern",
      "Moss,1.0",
      "Rose,007",
      "Lily,-0",
      "Ivy,-7",
      '"a',
    ];
    const read = await readAll("csv", lines.join("\n"));
    expect(read.map((line) => [line.line, "fault" in line])).toEqual([
      [2, true],
      [3, true],
      [4, true],
      [5, true],
      [6, true],
      [7, false],
      [8, true],
    ]);
    expect(read[1]).toEqual({ line: 3, fault: "there are 1 fields, not 2" });
    expect(read[6]).toMatchObject({ line: 8, fault: expect.stringContaining("does not close") });
  });

  test.each([
    ["never closes", '"Rose,sun\n', "Fern,shade\n".repeat(20_000)],
    ["closes at the next that opens", '"Rose,sun\n', 'Lily,"half\nFern,shade\nlight"\n'],
    ["closes in a later field", '"Rose,sun\n', 'Lily",half,"\nFern,shade\n",\n'],
    ["has the file end within it", '"Rose\n', "Fern,shade"],
  ])("takes nothing for a plant behind a quote that %s", async (_what, bad, rest) => {
    expect(await readAll("csv", `name,tag\nMoss,\n${bad}${rest}`)).toEqual([
      { line: 2, draft: { name: "Moss", tag: "" } },
      { line: 3, fault: expect.stringContaining("nothing behind it was read") },
    ]);
  });

  test("goes on behind a bad record of several lines whose quotes are sound", async () => {
    const read = await readAll("csv", 'name,id\n"Rose\nred",007\nFern,7\n');
    expect(read.map((line) => [line.line, "fault" in line])).toEqual([
      [2, true],
      [4, false],
    ]);
  });

  test("tells which line is not UTF-8", async () => {
    const bytes = Buffer.concat([
      Buffer.from("name\nFern\nCaf"),
      Buffer.from([0xe9, 10]),
      Buffer.from("Moss\n"),
    ]);
    expect(await readAll("csv", bytes)).toEqual([
      { line: 2, draft: { name: "Fern", tag: "" } },
      { line: 3, fault: "the text is not UTF-8" },
      { line: 4, draft: { name: "Moss", tag: "" } },
    ]);
  });

  test.each(["tag,id\n", "name,colour\n", "name,name\n", "Fern,shade\n", '{"name":"Fern"}\n'])(
    "is refused without a header that makes sense: %j",
    async (text) => {
      const lines = readPlantLines(inPieces(Buffer.from(text), 100), "csv");
      const error = await lines.next().catch((reason) => reason);
      expect(error).toMatchObject({
        code: "invalid-request",
        message: expect.stringContaining("name"),
      });
    },
  );

  test("that is empty has no plants", async () => {
    expect(await readAll("csv", "")).toEqual([]);
    expect(await readAll("csv", "name\n")).toEqual([]);
  });
});

describe("JSON Lines", () => {
  test("keep every digit of an id, and pass blank lines over", async () => {
    const text =
      '\uFEFF{"id":-9223372036854775808,"name":"\\"id\\":1"}\r\n\n{"name":"盆栽","tag":"1"}';
    expect(await readAll("jsonl", text)).toEqual([
      { line: 1, draft: { id: -(2n ** 63n), name: '"id":1', tag: "" } },
      { line: 3, draft: { name: "盆栽", tag: "1" } },
    ]);
  });

  test.each<[string, string]>([
    ["name,tag", "--format csv"],
    ["[1]", "not a JSON object"],
    ["null", "not a JSON object"],
    ['{"name":"Fern","colour":"green"}', '"colour"'],
    ['{"name":"Fern","name":"Moss"}', "the name is there twice"],
    ['{"name":"Fern","id":7,"i\\u0064":8}', "the id is there twice"],
    ['{"name":"Fern","id":"7"}', "integer"],
    ['{"name":"Fern","id":7.5}', "integer"],
    ['{"name":"Fern","id":null}', "integer"],
    ['{"name":5}', "name must"],
    ['{"name":{"id":5}}', "name must"],
    ['{"tag":"shade"}', "name must"],
    ['{"name":"Fern","tag":null}', "tag must"],
    ['{"name":"Fern","__proto__":1}', "__proto__"],
    [`{"name":"${"x".repeat(70_000)}"}`.padEnd(200_000), "too long"],
  ])("tell what is wrong with a line: %.40s", async (bad, reason) => {
    const read = await readAll("jsonl", `${bad}\n{"name":"Fern"}\n`);
    expect(read).toEqual([
      { line: 1, fault: expect.stringContaining(reason) },
      { line: 2, draft: { name: "Fern", tag: "" } },
    ]);
  });

  test("have numbers as the service reads them", async () => {
    const ids = ["1e3", "-0", "7.0", "9".repeat(40)];
    const read = await readAll("jsonl", ids.map((id) => `{"name":"Fern","id":${id}}\n`).join(""));
    const drafts = read.map((line) => "draft" in line && line.draft.id);
    expect(drafts).toEqual([1_000n, 0n, 7n, 2n ** 64n]);
  });

  test("leave it to the service to judge a name", async () => {
    expect(await readAll("jsonl", '{"name":""}')).toEqual([
      { line: 1, draft: { name: "", tag: "" } },
    ]);
  });
});

test.each<Format>(["csv", "jsonl"])("what is written as %s is read as it was", async (format) => {
  const plants = [
    { id: -(2n ** 63n), name: 'a,"b"\r\n', tag: "" },
    { id: 0n, name: " \\ ", tag: "\u2028" },
    { id: 2n ** 63n - 1n, name: "盆栽 🌱", tag: "=1+1" },
  ];
  const text = renderHeader(format) + renderPlants(plants, format);
  const read = await readAll(format, text);
  expect(read.map((line) => ("draft" in line ? line.draft : line.fault))).toEqual(plants);
});

test("the format follows from the flag, else from the file's name", () => {
  expect(chooseFormat(undefined, "plants.CSV")).toBe("csv");
  expect(chooseFormat(undefined, "plants.jsonl")).toBe("jsonl");
  expect(chooseFormat(undefined, "-")).toBe("jsonl");
  expect(chooseFormat("csv", "plants.jsonl")).toBe("csv");
  expect(() => chooseFormat("xml", "-")).toThrow("--format must be csv or jsonl");
});
