/** Files of plants: every row a plant or an error with its place. */
import { describe, expect, test } from "bun:test";
import { checkUpdateRows, validate } from "./check.ts";
import { PlantRenderer } from "./renderer.ts";
import { type Format, formatOf, formats, readRows, readUpdateRows } from "./rows.ts";

/** The second chunk may start within a character. */
function readAll(format: Format, text: string | Uint8Array) {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const middle = Math.ceil(bytes.length / 2);
  const rows = readRows([bytes.subarray(0, middle), bytes.subarray(middle)], format);
  return [...rows].map(validate);
}

/** A plant without a tag, as a row of CSV. */
const plain = (line: number, name: string) => ({ line, draft: { name, tag: "" } });

describe("CSV", () => {
  test.each<[string, string, ...rows: object[]]>([
    [
      "its columns in any order, with a byte order mark, CRLF and lines within fields",
      '\uFEFFTag,ID, name\r\nshade,9007199254740993,"Fern, ""tall""\nand wide"\r\n\r\n,,盆栽',
      { line: 2, draft: { name: 'Fern, "tall"\nand wide', tag: "shade", id: 9007199254740993n } },
      plain(5, "盆栽"),
    ],
    [
      "semicolons between its fields, and rows of nothing else, as spreadsheets write them",
      ';;\r\nTag;name;id\r\nshade;"Fern; tall, wide";7\r\n;;\r\n;Moss;\n;;;;\r\n',
      { line: 3, draft: { name: "Fern; tall, wide", tag: "shade", id: 7n } },
      plain(5, "Moss"),
    ],
    [
      "empty columns and rows at its end, and names of columns in any case",
      "ID,Name,TAG,,\r\n7,Fern,shade,,\r\n8,Moss,,\r\n,,,,\r\n,,,,\r\n",
      { line: 2, draft: { name: "Fern", tag: "shade", id: 7n } },
      { line: 3, draft: { name: "Moss", tag: "", id: 8n } },
    ],
    [
      "blank lines in one column, where a row of quotes is an empty name",
      'name\r\n\r\n\n""\nFern\n',
      { line: 4, error: "name must not be empty" },
      plain(5, "Fern"),
    ],
  ])("may have %s", (_what, text, ...rows) => {
    expect<unknown>(readAll("csv", text)).toEqual(rows);
  });

  test.each(["Moss,1.0", "Moss,007", '5" pot,1', "a\rb,1", '"a" ,1', "Fern", '"Rose\nred",007'])(
    "reports the bad record %j, and goes on with the next",
    (bad) => {
      const read = readAll("csv", `name,id\n${bad}\nIvy,-7\n`);
      expect(read.map((row) => "error" in row)).toEqual([true, false]);
    },
  );

  test.each([
    ["is never closed", '"Rose,sun\n', "Fern,shade\n"],
    ["is closed in a later field", '"Rose,sun\n', 'Lily",half,"\nFern,shade\n",\n'],
  ])("takes nothing for a plant after a quote that %s", (_what, bad, rest) => {
    expect(readAll("csv", `name,tag\nMoss,\n${bad}${rest}`)).toEqual([
      plain(2, "Moss"),
      { line: 3, error: expect.stringContaining("nothing after it was read"), isUnreadable: true },
    ]);
  });

  test.each([
    ["name,color\n", 'Remove the column "color".'],
    ["Fern,shade\n", '"Fern,shade".'],
    ['{"name":"Fern"}\n', "Is it JSON?"],
    ["\r\n\n", "This one is empty."],
  ])("is refused without a usable header: %j", (text, hint) => {
    const read = () => [...readRows([Buffer.from(text)], "csv")];
    expect(read).toThrow("must start with a line that names its columns");
    expect(read).toThrow(hint);
  });
});

describe("the rows of an update", () => {
  const readUpdate = (format: Format, text: string) =>
    checkUpdateRows(readUpdateRows([new TextEncoder().encode(text)], format));

  test("have only the fields that the file has", async () => {
    const { valid, invalid } = await readUpdate("csv", "tag;id\r\nshade;7\r\n;8\r\n");
    expect(valid.map(({ draft }) => draft)).toEqual([
      { tag: "shade", id: 7n },
      { tag: "", id: 8n },
    ]);
    const lines = await readUpdate("jsonl", '{"id":7,"tag":""}\n{"name":"Fern"}\n');
    expect(lines.valid.map(({ draft }) => draft)).toEqual([{ id: 7n, tag: "" }, { name: "Fern" }]);
    expect([invalid, lines.invalid]).toEqual([[], []]);
  });

  test.each<[Format, string, ...errors: string[]]>([
    ["csv", "id,tag\n7,\n,shade\n", "line 3: there is neither an id nor a name"],
    ["jsonl", '{"tag":"shade"}', "line 1: there is neither an id nor a name"],
    ["csv", "id,name\n7,\n,Fern\n", "line 2: name must not be empty"],
    ["jsonl", '{"id":7,"tag":null}', "line 1: tag must be a string"],
    [
      "csv",
      "id,name\n7,Fern\n8,Moss\n7,Boston fern\n",
      "line 4: line 2 has the id 7, too; leave the id empty to add a plant",
    ],
    [
      "csv",
      "id,name\n9.00719925474099E+015,Fern\n",
      "line 2: the id must be an integer such as 7 or -7: only digits, no leading zeros; a " +
        "spreadsheet has rounded this one",
    ],
  ])("of %s are refused: %j", async (format, text, ...errors) => {
    const { invalid } = await readUpdate(format, text);
    expect(invalid.map(({ line, error }) => `line ${line}: ${error}`)).toEqual(errors);
  });

  test("need a column that says which plants they are", async () => {
    const refused = await readUpdate("csv", "tag\nshade\n").catch((error: Error) => error.message);
    expect(refused).toStartWith(
      "A CSV file must start with a line that names its columns: name, id or both",
    );
  });
});

const latin1 = (text: string) => Buffer.from(text, "latin1");
const utf16 = (text: string) => Buffer.from(text, "utf16le");

test.each<[string, Buffer, string]>([
  ["an Excel workbook", latin1("PK\x03\x04\x14\0\0\0"), "is an Excel workbook"],
  ["an old workbook", latin1("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "is an Excel workbook"],
  ["compressed", latin1("\x1f\x8b\b\0\0\0\0\0"), "Unpack it with gunzip"],
  ["UTF-16", utf16("name,tag\n"), "The file is UTF-16, not UTF-8. Save it as UTF"],
  ["UTF-16, big-endian, with a mark", utf16("\uFEFF{}\n").swap16(), "The file is UTF-16"],
  ["Latin-1", latin1("name\nCafé\n"), "The file is not UTF-8."],
  ["cut off within a character", Buffer.from("name\nCafé").subarray(0, -1), "not UTF-8"],
])("a file that is %s is called that, in any format", (_what, bytes, message) => {
  for (const format of formats) expect(() => readAll(format, bytes)).toThrow(message);
});

describe("JSON Lines", () => {
  test("keep every digit of an id, have numbers as the service reads them, and blank lines", () => {
    const lines = [
      '\uFEFF{"id":-9223372036854775808,"name":"\\"id\\":1"}\r\n\n{"name":"盆栽","tag":"1"}',
      ...["1e3", "-0", "7.0"].map((id) => `{"name":"Fern","id":${id}}`),
    ];
    expect(readAll("jsonl", lines.join("\n"))).toEqual([
      { line: 1, draft: { id: -(2n ** 63n), name: '"id":1' } },
      { line: 3, draft: { name: "盆栽", tag: "1" } },
      ...[1_000n, 0n, 7n].map((id, index) => ({ line: index + 4, draft: { name: "Fern", id } })),
    ]);
  });

  test.each<[string, string]>([
    ["name,tag", "not a JSON object"],
    ['{"nam":"Fern","color":"green"}', 'no field "nam"; there is no field "color"'],
    ['{"name":"Fern","id":7,"i\\u0064":8}', "id is given twice"],
    ['{"name":"Fern","id":9223372036854775808}', "id must not be more than"],
    ['{"name":"","tag":null}', "name must not be empty; tag must be a string"],
    ["[".repeat(60_000), "not a JSON object"],
  ])("report a bad line: %.40s", (bad, reason) => {
    const read = readAll("jsonl", `{"name":"Ivy"}\n${bad}\n{"name":"Fern"}\n`);
    expect(read).toEqual([
      { line: 1, draft: { name: "Ivy" } },
      expect.objectContaining({ line: 2, error: expect.stringContaining(reason) }),
      { line: 3, draft: { name: "Fern" } },
    ]);
  });

  test("that are CSV are refused as a whole", () => {
    expect(() => readAll("jsonl", '\n"name"\nFern\n')).toThrow("must start with { or [. This one");
  });
});

describe("a JSON array", () => {
  test.each<[string, ...places: string[]]>([
    ['\n[\n{"name":"Fern"},\n{"name":"Fern"}\n]\n\n', "3:1", "4:1"],
    ['[\n  {\n    "name": "Fern"\n  },\n  {"name":"Fern"}\n]', "2:3", "5:3"],
    [" [\n]\n"],
  ])("%j has its rows at %s", (text, ...places) => {
    const read = readAll("json", text);
    expect(read.map(({ line, column }) => `${line}:${column}`)).toEqual(places);
    for (const row of read) expect(row).toMatchObject({ draft: { name: "Fern" } });
  });

  test.each([
    ['\n{"name":"Ivy"}]', "1:17", "malformed here; nothing after it was read"],
    [',\n  {"name":"Ivy",}]', "2:3", "not a JSON object"],
    [",\n]", "1:17", "malformed here"],
    ["", "1:17", "malformed here"],
  ])("that goes on with %j is malformed at %s", (rest, place, error) => {
    const [first, bad, ...others] = readAll("json", `[{"name":"Fern"}${rest}`);
    expect(first).toEqual({ line: 1, column: 2, draft: { name: "Fern" } });
    expect(`${bad?.line}:${bad?.column}`).toBe(place);
    expect([bad, others]).toMatchObject([{ error: expect.stringContaining(error) }, []]);
  });
});

test("a file's extension says its format, or nothing", () => {
  const names = ["plants.CSV", "plants.json", "plants.jsonl", "plants.ndjson", "plants.csv.gz"];
  expect(names.map(formatOf)).toEqual(["csv", "json", "jsonl", "jsonl", undefined]);
});

test("CSV starts with a byte order mark, and warns of what a spreadsheet takes for a formula", () => {
  const renderer = new PlantRenderer("csv");
  expect(renderer.header()).toBe("\uFEFFid,name,tag\r\n");
  expect(renderer.page([{ id: -1n, name: "Fern", tag: "a=b" }])).toBe("-1,Fern,a=b\r\n");
  expect(renderer.warning).toBeUndefined();
  for (const tag of ["=1", "+1", "-1", "@a", "\tb"]) renderer.page([{ id: 3n, name: "Fern", tag }]);
  expect(renderer.warning).toStartWith("5 plants have a name");
});
