/** Files of plants: every row a plant or an error with its place. */
import { describe, expect, test } from "bun:test";
import { checkUpdateRows, validate } from "./check.ts";
import { PlantRenderer } from "./renderer.ts";
import { type Format, formatOf, formats, readRows, readUpdateRows } from "./rows.ts";

/** Reads a file in two chunks, of which the second may start within a character. */
function readAll(format: Format, content: string | Uint8Array) {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const middle = Math.ceil(bytes.length / 2);
  const rows = readRows([bytes.subarray(0, middle), bytes.subarray(middle)], format);
  return [...rows].map(validate);
}

/** Reads a file of changes. Returns the changes, and its errors with their lines. */
async function readUpdate(format: Format, content: string) {
  const rows = readUpdateRows([new TextEncoder().encode(content)], format);
  const { valid, invalid } = await checkUpdateRows(rows);
  return {
    drafts: valid.map(({ draft }) => draft),
    errors: invalid.map(({ line, error }) => ({ line, error })),
  };
}

describe("a CSV file", () => {
  test("may have its columns in any order", () => {
    expect(readAll("csv", "Tag,ID, name\nshade,9007199254740993,Fern\n,,盆栽\n")).toEqual([
      { line: 2, draft: { name: "Fern", tag: "shade", id: 9007199254740993n } },
      { line: 3, draft: { name: "盆栽", tag: "" } },
    ]);
  });

  test("may have a byte order mark, CRLF and blank lines", () => {
    expect(readAll("csv", "\uFEFFTag,ID, name\r\nshade,7,Fern\r\n\r\n,,盆栽")).toEqual([
      { line: 2, draft: { name: "Fern", tag: "shade", id: 7n } },
      { line: 4, draft: { name: "盆栽", tag: "" } },
    ]);
  });

  test("may have commas, quotes and line breaks in a field", () => {
    expect(readAll("csv", 'name\n"Fern, ""tall""\nand wide"\nMoss\n')).toEqual([
      { line: 2, draft: { name: 'Fern, "tall"\nand wide', tag: "" } },
      { line: 4, draft: { name: "Moss", tag: "" } },
    ]);
  });

  test("may have semicolons between its fields", () => {
    expect(readAll("csv", 'Tag;name;id\r\nshade;"Fern; tall, wide";7\r\n;Moss;\n')).toEqual([
      { line: 2, draft: { name: "Fern; tall, wide", tag: "shade", id: 7n } },
      { line: 3, draft: { name: "Moss", tag: "" } },
    ]);
  });

  test("may have rows of nothing but semicolons, as spreadsheets write them", () => {
    expect(readAll("csv", ";;\r\nTag;name;id\r\nshade;Fern;7\r\n;;\r\n;Moss;\n;;;;\r\n")).toEqual([
      { line: 3, draft: { name: "Fern", tag: "shade", id: 7n } },
      { line: 5, draft: { name: "Moss", tag: "" } },
    ]);
  });

  test("may have empty columns and rows at its end", () => {
    expect(readAll("csv", "id,name,tag,,\r\n7,Fern,shade,,\r\n,,,,\r\n,,,,\r\n")).toEqual([
      { line: 2, draft: { name: "Fern", tag: "shade", id: 7n } },
    ]);
  });

  test("may have names of columns in any case", () => {
    expect(readAll("csv", "ID,Name,TAG,,\r\n7,Fern,shade,,\r\n8,Moss,,\r\n")).toEqual([
      { line: 2, draft: { name: "Fern", tag: "shade", id: 7n } },
      { line: 3, draft: { name: "Moss", tag: "", id: 8n } },
    ]);
  });

  test("may have blank lines in one column, where quotes are an empty name", () => {
    expect(readAll("csv", 'name\r\n\r\n\n""\nFern\n')).toEqual([
      { line: 4, error: "name must not be empty" },
      { line: 5, draft: { name: "Fern", tag: "" } },
    ]);
  });

  test.each(["Moss,1.0", "Moss,007", '5" pot,1', "a\rb,1", '"a" ,1', "Fern", '"Rose\nred",007'])(
    "reports the bad record %j, and goes on with the next",
    (bad) => {
      const [reported, next, ...others] = readAll("csv", `name,id\n${bad}\nIvy,-7\n`);

      expect(reported).toHaveProperty("error");
      expect(next).toMatchObject({ draft: { name: "Ivy", id: -7n } });
      expect(others).toEqual([]);
    },
  );

  test.each([
    {
      quote: "is never closed",
      content: 'name,tag\nMoss,\n"Rose,sun\nFern,shade\n',
    },
    {
      quote: "is closed in a later field",
      content: 'name,tag\nMoss,\n"Rose,sun\nLily",half,"\nFern,shade\n",\n',
    },
  ])("takes nothing for a plant after a quote that $quote", ({ content }) => {
    expect(readAll("csv", content)).toEqual([
      { line: 2, draft: { name: "Moss", tag: "" } },
      { line: 3, error: expect.stringContaining("nothing after it was read"), isUnreadable: true },
    ]);
  });

  test.each([
    { content: "name,color\n", hint: 'Remove the column "color".' },
    { content: "Fern,shade\n", hint: '"Fern,shade".' },
    { content: '{"name":"Fern"}\n', hint: "Is it JSON?" },
    { content: "\r\n\n", hint: "This one is empty." },
  ])("is refused without a usable header, with a hint: $hint", ({ content, hint }) => {
    const read = () => [...readRows([Buffer.from(content)], "csv")];

    expect(read).toThrow("must start with a line that names its columns");
    expect(read).toThrow(hint);
  });
});

describe("a row of an update", () => {
  test("has only the fields that a CSV has columns for", async () => {
    const { drafts, errors } = await readUpdate("csv", "tag;id\r\nshade;7\r\n;8\r\n");

    expect(errors).toEqual([]);
    expect(drafts).toEqual([
      { tag: "shade", id: 7n },
      { tag: "", id: 8n },
    ]);
  });

  test("has only the fields that its JSON object has", async () => {
    const { drafts, errors } = await readUpdate("jsonl", '{"id":7,"tag":""}\n{"name":"Fern"}\n');

    expect(errors).toEqual([]);
    expect(drafts).toEqual([{ id: 7n, tag: "" }, { name: "Fern" }]);
  });

  test("of a CSV needs an id or a name", async () => {
    const { errors } = await readUpdate("csv", "id,tag\n7,\n,shade\n");

    expect(errors).toEqual([{ line: 3, error: "there is neither an id nor a name" }]);
  });

  test("of JSON needs an id or a name", async () => {
    const { errors } = await readUpdate("jsonl", '{"tag":"shade"}');

    expect(errors).toEqual([{ line: 1, error: "there is neither an id nor a name" }]);
  });

  test("can't empty a name", async () => {
    const { errors } = await readUpdate("csv", "id,name\n7,\n,Fern\n");

    expect(errors).toEqual([{ line: 2, error: "name must not be empty" }]);
  });

  test("can't have a tag that is null", async () => {
    const { errors } = await readUpdate("jsonl", '{"id":7,"tag":null}');

    expect(errors).toEqual([{ line: 1, error: "tag must be a string" }]);
  });

  test("can't have the id of an earlier row", async () => {
    const { errors } = await readUpdate("csv", "id,name\n7,Fern\n8,Moss\n7,Boston fern\n");

    expect(errors).toEqual([
      { line: 4, error: "line 2 has the id 7, too; leave the id empty to add a plant" },
    ]);
  });

  test("can't have an id that a spreadsheet has rounded", async () => {
    const { errors } = await readUpdate("csv", "id,name\n9.00719925474099E+015,Fern\n");

    expect(errors).toEqual([
      {
        line: 2,
        error:
          "the id must be an integer such as 7 or -7: only digits, no leading zeros; a " +
          "spreadsheet has rounded this one",
      },
    ]);
  });

  test("needs a column that says which plant it is", async () => {
    const message = await readUpdate("csv", "tag\nshade\n").catch((error: Error) => error.message);

    expect(message).toStartWith(
      "A CSV file must start with a line that names its columns: name, id or both",
    );
  });
});

test.each<{ kind: string; bytes: Buffer; message: string }>([
  {
    kind: "an Excel workbook",
    bytes: Buffer.from("PK\x03\x04\x14\0\0\0", "latin1"),
    message: "is an Excel workbook",
  },
  {
    kind: "an old Excel workbook",
    bytes: Buffer.from("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "latin1"),
    message: "is an Excel workbook",
  },
  {
    kind: "compressed",
    bytes: Buffer.from("\x1f\x8b\b\0\0\0\0\0", "latin1"),
    message: "Unpack it with gunzip",
  },
  {
    kind: "UTF-16",
    bytes: Buffer.from("name,tag\n", "utf16le"),
    message: "The file is UTF-16, not UTF-8. Save it as UTF",
  },
  {
    kind: "big-endian UTF-16 with a byte order mark",
    bytes: Buffer.from("\uFEFF{}\n", "utf16le").swap16(),
    message: "The file is UTF-16",
  },
  {
    kind: "Latin-1",
    bytes: Buffer.from("name\nCafé\n", "latin1"),
    message: "The file is not UTF-8.",
  },
  {
    kind: "cut off within a character",
    bytes: Buffer.from("name\nCafé").subarray(0, -1),
    message: "not UTF-8",
  },
])("a file that is $kind is refused as that, in any format", ({ bytes, message }) => {
  for (const format of formats) expect(() => readAll(format, bytes)).toThrow(message);
});

describe("a file of JSON Lines", () => {
  test("keeps every digit of an id, even beside a name like an id", () => {
    expect(readAll("jsonl", '{"id":-9223372036854775808,"name":"\\"id\\":1"}\n')).toEqual([
      { line: 1, draft: { id: -(2n ** 63n), name: '"id":1' } },
    ]);
  });

  test("may have a byte order mark, CRLF and blank lines", () => {
    expect(readAll("jsonl", '\uFEFF{"name":"Fern"}\r\n\n{"name":"盆栽","tag":"1"}')).toEqual([
      { line: 1, draft: { name: "Fern" } },
      { line: 3, draft: { name: "盆栽", tag: "1" } },
    ]);
  });

  test.each([
    { number: "1e3", id: 1_000n },
    { number: "-0", id: 0n },
    { number: "7.0", id: 7n },
  ])("has the id $id for the number $number, as in a request", ({ number, id }) => {
    expect(readAll("jsonl", `{"name":"Fern","id":${number}}`)).toEqual([
      { line: 1, draft: { name: "Fern", id } },
    ]);
  });

  test.each([
    { bad: "name,tag", error: "not a JSON object" },
    {
      bad: '{"nam":"Fern","color":"green"}',
      error: 'no field "nam"; there is no field "color"',
    },
    { bad: '{"name":"Fern","id":7,"i\\u0064":8}', error: "id is given twice" },
    { bad: '{"name":"Fern","id":9223372036854775808}', error: "id must not be more than" },
    { bad: '{"name":"","tag":null}', error: "name must not be empty; tag must be a string" },
    // Nested so deeply that a parser could run out of stack.
    { bad: "[".repeat(60_000), error: "not a JSON object" },
  ])("reports a bad line, and goes on with the next: $error", ({ bad, error }) => {
    expect(readAll("jsonl", `{"name":"Ivy"}\n${bad}\n{"name":"Fern"}\n`)).toEqual([
      { line: 1, draft: { name: "Ivy" } },
      expect.objectContaining({ line: 2, error: expect.stringContaining(error) }),
      { line: 3, draft: { name: "Fern" } },
    ]);
  });

  test("is refused as a whole if it is CSV", () => {
    expect(() => readAll("jsonl", '\n"name"\nFern\n')).toThrow("must start with { or [. This one");
  });
});

describe("a JSON array", () => {
  test("may have a row on each line", () => {
    const read = readAll("json", '\n[\n{"name":"Fern"},\n{"name":"Moss"}\n]\n\n');

    expect(read).toEqual([
      { line: 3, column: 1, draft: { name: "Fern" } },
      { line: 4, column: 1, draft: { name: "Moss" } },
    ]);
  });

  test("may have rows of several lines, which begin at any column", () => {
    const read = readAll("json", '[\n  {\n    "name": "Fern"\n  },\n  {"name":"Moss"}\n]');

    expect(read).toEqual([
      { line: 2, column: 3, draft: { name: "Fern" } },
      { line: 5, column: 3, draft: { name: "Moss" } },
    ]);
  });

  test("may be empty", () => {
    expect(readAll("json", " [\n]\n")).toEqual([]);
  });

  test.each([
    {
      malformed: "without a comma between two rows",
      content: '[{"name":"Fern"}\n{"name":"Ivy"}]',
      place: { line: 1, column: 17 },
      error: "malformed here; nothing after it was read",
    },
    {
      malformed: "with a comma after the last field of a row",
      content: '[{"name":"Fern"},\n  {"name":"Ivy",}]',
      place: { line: 2, column: 3 },
      error: "not a JSON object",
    },
    {
      malformed: "with a comma after the last row",
      content: '[{"name":"Fern"},\n]',
      place: { line: 1, column: 17 },
      error: "malformed here",
    },
    {
      malformed: "without its end",
      content: '[{"name":"Fern"}',
      place: { line: 1, column: 17 },
      error: "malformed here",
    },
  ])("$malformed is reported where it is malformed", ({ content, place, error }) => {
    const [first, bad, ...others] = readAll("json", content);

    expect(first).toEqual({ line: 1, column: 2, draft: { name: "Fern" } });
    expect(bad).toMatchObject({ ...place, error: expect.stringContaining(error) });
    expect(others).toEqual([]);
  });
});

test("a file's extension says its format, or nothing", () => {
  expect(formatOf("plants.CSV")).toBe("csv");
  expect(formatOf("plants.json")).toBe("json");
  expect(formatOf("plants.jsonl")).toBe("jsonl");
  expect(formatOf("plants.ndjson")).toBe("jsonl");
  expect(formatOf("plants.csv.gz")).toBeUndefined();
});

describe("a CSV that is written", () => {
  test("starts with a byte order mark", () => {
    expect(new PlantRenderer("csv").header()).toBe("\uFEFFid,name,tag\r\n");
  });

  test("needs no warning if a spreadsheet takes nothing for a formula", () => {
    const renderer = new PlantRenderer("csv");

    expect(renderer.page([{ id: -1n, name: "Fern", tag: "a=b" }])).toBe("-1,Fern,a=b\r\n");

    expect(renderer.warning).toBeUndefined();
  });

  test("comes with a warning that counts what a spreadsheet takes for a formula", () => {
    const renderer = new PlantRenderer("csv");

    for (const tag of ["=1", "+1", "-1", "@a", "\tb"]) {
      renderer.page([{ id: 3n, name: "Fern", tag }]);
    }

    expect(renderer.warning).toStartWith("5 plants have a name");
  });
});
