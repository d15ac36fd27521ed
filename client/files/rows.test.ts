/** Files of plants: every row a plant or an error with its place. */
import { describe, expect, test } from "bun:test";
import { validate } from "./check.ts";
import { PlantRenderer } from "./renderer.ts";
import { type Format, formatOf, formats, readRows } from "./rows.ts";

/** The second chunk may start within a character. */
function readAll(format: Format, text: string | Uint8Array) {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const middle = Math.ceil(bytes.length / 2);
  const rows = readRows([bytes.subarray(0, middle), bytes.subarray(middle)], format);
  return [...rows].map(validate);
}

describe("CSV", () => {
  test("has its columns in any order, with a byte order mark, CRLF and lines within fields", () => {
    const text =
      '\uFEFFTag,ID, name\r\nshade,9007199254740993,"Fern, ""tall""\nand wide"\r\n\r\n,,盆栽';
    expect(readAll("csv", text)).toEqual([
      { line: 2, draft: { name: 'Fern, "tall"\nand wide', tag: "shade", id: 9007199254740993n } },
      { line: 5, draft: { name: "盆栽", tag: "" } },
    ]);
  });

  test.each(['5" pot,1', 'a"b",1', "a\rb,1", '"a"b,1', '"a" ,1', "Fern", '"Rose\nred",007'])(
    "reports the bad record %j, and goes on with the next",
    (bad) => {
      const read = readAll("csv", `name,id\n${bad}\nIvy,-7\n`);
      expect(read.map((row) => "error" in row)).toEqual([true, false]);
    },
  );

  test.each(["1.0", "007", "-0", " 5", "+6", "1e2"])("reports %j, which is no id", (id) => {
    expect(readAll("csv", `name,id\nMoss,${id}\n`)).toEqual([
      { line: 2, error: expect.stringContaining("the id must be an integer") },
    ]);
  });

  test.each([
    ["is never closed", '"Rose,sun\n', "Fern,shade\n".repeat(20_000)],
    ["is closed by the next that opens", '"Rose,sun\n', 'Lily,"half\nFern,shade\nlight"\n'],
    ["is closed in a later field", '"Rose,sun\n', 'Lily",half,"\nFern,shade\n",\n'],
    ["has the file end within it", '"Rose\n', "Fern,shade"],
  ])("takes nothing for a plant after a quote that %s", (_what, bad, rest) => {
    expect(readAll("csv", `name,tag\nMoss,\n${bad}${rest}`)).toEqual([
      { line: 2, draft: { name: "Moss", tag: "" } },
      { line: 3, error: expect.stringContaining("nothing after it was read"), isUnreadable: true },
    ]);
  });

  test("that is not UTF-8 is refused as a whole", () => {
    const read = () => readAll("csv", Buffer.from("name\nCafé\n", "latin1"));
    expect(read).toThrow("The file is not UTF-8.");
    expect(() => readAll("csv", Buffer.from("name\nCafé").subarray(0, -1))).toThrow("not UTF-8");
  });

  test.each([
    ["an Excel workbook", "PK\x03\x04\x14\0", "is an Excel workbook"],
    ["a workbook of an old Excel", "\xd0\xcf\x11\xe0\xa1\xb1", "is an Excel workbook"],
    ["a compressed file", "\x1f\x8b\x08\0", "Unpack it with gunzip"],
  ])("that is %s is called that, in any format", (_what, start, message) => {
    for (const format of formats) {
      const read = () => [...readRows([Buffer.from(start, "latin1")], format)];
      expect(read).toThrow(message);
    }
  });

  test.each([
    ["name,color\n", 'Remove the column "color".'],
    ["name,name\n", 'Remove the column "name".'],
    ["Fern,shade\n", '"Fern,shade".'],
    ['{"name":"Fern"}\n', "Is it JSON?"],
    ["\r\n\n", "This one is empty."],
  ])("is refused without a usable header: %j", (text, hint) => {
    const read = () => [...readRows([Buffer.from(text)], "csv")];
    expect(read).toThrow("must start with a line that names its columns");
    expect(read).toThrow(hint);
  });

  test("may separate its fields by semicolons", () => {
    const text = 'Tag;name;id\nshade;"Fern; tall, wide";7\n;Moss;\n';
    expect(readAll("csv", text)).toEqual([
      { line: 2, draft: { name: "Fern; tall, wide", tag: "shade", id: 7n } },
      { line: 3, draft: { name: "Moss", tag: "" } },
    ]);
  });

  test("may have rows of nothing but separators, as spreadsheets write them", () => {
    expect(readAll("csv", ";;\r\nid;name;tag\r\n;;\r\n;Fern;\r\n;;;;\r\n")).toEqual([
      { line: 4, draft: { name: "Fern", tag: "" } },
    ]);
    expect(readAll("csv", "name\n;\n,\n")).toEqual([{ line: 2, draft: { name: ";", tag: "" } }]);
  });

  test("with one column may have blank lines, but a row of quotes is an empty name", () => {
    expect(readAll("csv", 'name\r\n\r\n\n""\nFern\n')).toEqual([
      { line: 4, error: "name must not be empty" },
      { line: 5, draft: { name: "Fern", tag: "" } },
    ]);
  });
});

test.each<[Format, string]>([
  ["csv", "name,tag\nFern,shade\nMoss,\n"],
  ["jsonl", '{"name":"Fern"}\n{"name":"Moss"}\n'],
])("a file of another kind is named as what it is: %s", (format, text) => {
  for (const start of ["\uFEFF", ""]) {
    const littleEndian = Buffer.from(start + text, "utf16le");
    for (const bytes of [littleEndian, Buffer.from(littleEndian).swap16()]) {
      expect(() => readAll(format, bytes)).toThrow("The file is UTF-16, not UTF-8. Save it as UTF");
    }
  }
});

describe("JSON Lines", () => {
  test("keep every digit of an id, and may have blank lines", () => {
    const text =
      '\uFEFF{"id":-9223372036854775808,"name":"\\"id\\":1"}\r\n\n{"name":"盆栽","tag":"1"}';
    expect(readAll("jsonl", text)).toEqual([
      { line: 1, draft: { id: -(2n ** 63n), name: '"id":1' } },
      { line: 3, draft: { name: "盆栽", tag: "1" } },
    ]);
  });

  test.each<[string, string]>([
    ["name,tag", "not a JSON object"],
    ['{"name":"Fern"', "not a JSON object"],
    ["[1]", "not a JSON object"],
    ['{"name":"Fern","color":"green"}', '"color"'],
    ['{"name":"Fern","id":7,"i\\u0064":8}', "id is given twice"],
    ['{"name":"Fern","id":9223372036854775808}', "id must not be more than"],
    ['{"name":"","tag":null}', "name must not be empty; tag must be a string"],
    ['{"name":"Fern","__proto__":1}', "__proto__"],
    ["[".repeat(60_000), "not a JSON object"],
  ])("report a bad line: %.40s", (bad, reason) => {
    const read = readAll("jsonl", `{"name":"Ivy"}\n${bad}\n{"name":"Fern"}\n`);
    expect(read).toEqual([
      { line: 1, draft: { name: "Ivy" } },
      expect.objectContaining({ line: 2, error: expect.stringContaining(reason) }),
      { line: 3, draft: { name: "Fern" } },
    ]);
  });

  test.each(["name,tag\nFern,\n", '\n"name"\nFern\n'])(
    "that are CSV are refused as a whole: %j",
    (text) => {
      const read = () => readAll("jsonl", text);
      expect(read).toThrow("must start with { or [. This one starts with ");
    },
  );

  test("have numbers as the service reads them", () => {
    const ids = ["1e3", "-0", "7.0"];
    const read = readAll("jsonl", ids.map((id) => `{"name":"Fern","id":${id}}\n`).join(""));
    expect(read.map((row) => "draft" in row && row.draft.id)).toEqual([1_000n, 0n, 7n]);
  });
});

describe("a JSON array", () => {
  const fern = { name: "Fern" };

  test.each<[string, ...places: string[]]>([
    ['[{"name":"Fern"},{"name":"Fern"}]', "1:2", "1:18"],
    ['\n[\n{"name":"Fern"},\n{"name":"Fern"}\n]\n\n', "3:1", "4:1"],
    ['[\n  {\n    "name": "Fern"\n  },\n  {"name":"Fern"}\n]', "2:3", "5:3"],
    [" [\n]\n"],
  ])("%j has its rows at %s", (text, ...places) => {
    const read = readAll("json", text);
    expect(read.map(({ line, column }) => `${line}:${column}`)).toEqual(places);
    for (const row of read) expect(row).toMatchObject({ draft: fern });
  });

  test.each<[string, line: number, column: number, error: string]>([
    ['[{"name":"Fern"}\n{"name":"Ivy"}]', 1, 17, "malformed here; nothing after it was read"],
    ['[{"name":"Fern"}]\n{"name":"Ivy"}', 1, 17, "malformed here"],
    ['[{"name":"Fern"},\n  {"name":"Ivy",}]', 2, 3, "not a JSON object"],
    ['[{"name":"Fern"},\n7]', 2, 1, "not a JSON object"],
    ['[{"name":"Fern"},\n]', 1, 17, "malformed here"],
  ])("%j is malformed at line %d, column %d", (text, line, column, error) => {
    const [first, ...others] = readAll("json", text);
    expect(first).toEqual({ line: 1, column: 2, draft: fern });
    expect(others).toMatchObject([{ line, column, error: expect.stringContaining(error) }]);
  });

  test.each(["", ",", ',\n{"name":"Ivy'])("that is cut off says so: %j", (last) => {
    expect(readAll("json", `[{"name":"Fern"}${last}`).at(-1)).toMatchObject({
      error: expect.stringContaining("malformed here; nothing after it was read"),
      isUnreadable: true,
    });
  });
});

test.each<Format>(formats)("what is written as %s is read as it was", (format) => {
  const plants = [
    { id: -(2n ** 63n), name: 'a,"b"\r\n', tag: "" },
    { id: 0n, name: " \\ ", tag: "\u2028" },
    { id: 2n ** 63n - 1n, name: "盆栽 🌱", tag: "=1+1" },
  ];
  const renderer = new PlantRenderer(format);
  const pages = plants.map((plant) => renderer.page([plant]));
  const read = readAll(format, renderer.header() + pages.join("") + renderer.footer());
  expect(read.map((row) => ("draft" in row ? row.draft : row.error))).toEqual(plants);
});

test.each([
  ["plants.CSV", "csv"],
  ["plants.tsv", undefined],
  ["plants.json", "json"],
  ["plants.jsonl", "jsonl"],
  ["plants.ndjson", "jsonl"],
  ["-", undefined],
  ["plants.csv.gz", undefined],
])("the format of %s is %p", (path, format) => {
  expect(formatOf(path)).toBe(format as Format | undefined);
});

test("CSV starts with a byte order mark, and warns of what a spreadsheet takes for a formula", () => {
  const renderer = new PlantRenderer("csv");
  expect(renderer.header()).toBe("\uFEFFid,name,tag\r\n");
  expect(renderer.page([{ id: -1n, name: "Fern", tag: "a=b" }])).toBe("-1,Fern,a=b\r\n");
  expect(renderer.warning).toBeUndefined();
  expect(renderer.page([{ id: 2n, name: "=HYPERLINK(1)", tag: "" }])).toBe("2,=HYPERLINK(1),\r\n");
  expect(renderer.warning).toStartWith("1 plant has a name or tag that starts with =");
  for (const tag of ["+1", "-1", "@a", "\tb"]) renderer.page([{ id: 3n, name: "Fern", tag }]);
  expect(renderer.warning).toStartWith("5 plants have a name");
});
