/** What a file would change in a garden, before anything is sent. */
import { describe, expect, test } from "bun:test";
import type { Plant } from "../plant-store.ts";
import { checkUpdateRows } from "./check.ts";
import { Comparison, describeComparison, renderChange } from "./comparison.ts";
import { renderCsvRecord } from "./csv.ts";
import { type Format, readUpdateRows } from "./rows.ts";

/** Compares a file with a garden, whose plants come in two pages. */
async function compare(format: Format, text: string, garden: readonly Plant[]) {
  const check = await checkUpdateRows(readUpdateRows([new TextEncoder().encode(text)], format));
  expect(check.invalid).toEqual([]);
  const comparison = new Comparison(check.valid, format);
  const half = garden.length / 2;
  comparison.take(garden.slice(0, half));
  comparison.take(garden.slice(half));
  comparison.finish();
  return {
    added: comparison.added.map(({ draft }) => draft),
    changes: comparison.changes.map(renderChange),
    /** The fields that are set, for each of the changes. */
    setFields: comparison.changes.map(({ set }) => Object.keys(set)),
    unchanged: comparison.unchanged,
    refused: comparison.refused.map(({ line, error }) => ({ line, error })),
    description: describeComparison(comparison),
  };
}

describe("a row with the id of a plant", () => {
  test("changes the fields that differ, and says how", async () => {
    const { changes } = await compare(
      "csv",
      "id,name,tag\n7,Boston fern,hall\n8,Moss,\n9,Ivy,pond\n",
      [
        { id: 7n, name: "Fern", tag: "shade" },
        { id: 8n, name: "Moss", tag: "shade" },
        { id: 9n, name: "Ivy", tag: "" },
      ],
    );

    expect(changes).toEqual([
      "7: Fern → Boston fern, tag shade → hall",
      "8: Moss, tag shade → (none)",
      "9: Ivy, tag (none) → pond",
    ]);
  });

  test("changes nothing if no field differs", async () => {
    const { changes, unchanged } = await compare("csv", "id,name,tag\n10,Rose,sun\n", [
      { id: 10n, name: "Rose", tag: "sun" },
    ]);

    expect(changes).toEqual([]);
    expect(unchanged).toBe(1);
  });

  test("is counted as a change or as it is", async () => {
    const { description } = await compare(
      "csv",
      "id,name,tag\n7,Fern,hall\n8,Moss,\n10,Rose,sun\n",
      [
        { id: 7n, name: "Fern", tag: "shade" },
        { id: 8n, name: "Moss", tag: "shade" },
        { id: 10n, name: "Rose", tag: "sun" },
      ],
    );

    expect(description).toBe("3 rows: 0 new, 2 change, 1 as it is.");
  });

  test("keeps the name if the file has no names", async () => {
    const { changes, setFields } = await compare("csv", "tag,id\nhall,7\n", [
      { id: 7n, name: "Fern", tag: "shade" },
    ]);

    expect(changes).toEqual(["7: Fern, tag shade → hall"]);
    expect(setFields).toEqual([["tag"]]);
  });

  test("keeps the tag if the file has no tags", async () => {
    const { changes, setFields } = await compare("csv", "id;name\n7;Oak\n", [
      { id: 7n, name: "Fern", tag: "shade" },
    ]);

    expect(changes).toEqual(["7: Fern → Oak"]);
    expect(setFields).toEqual([["name"]]);
  });

  test("keeps the name if its JSON object has none", async () => {
    const { changes, setFields } = await compare("jsonl", '{"id":7,"tag":"hall"}', [
      { id: 7n, name: "Fern", tag: "shade" },
    ]);

    expect(changes).toEqual(["7: Fern, tag shade → hall"]);
    expect(setFields).toEqual([["tag"]]);
  });
});

describe("a row without an id", () => {
  test("is a plant with its name and tag", async () => {
    const { added, unchanged } = await compare("csv", "name,tag\nFern,shade\nMoss,\nMoss,shade\n", [
      { id: 1n, name: "Fern", tag: "shade" },
      { id: 3n, name: "Moss", tag: "" },
    ]);

    expect(unchanged).toBe(2);
    expect(added).toEqual([{ name: "Moss", tag: "shade" }]);
  });

  test("is added if other rows are the plants with its name and tag", async () => {
    const file = "id,name,tag\n2,Fern,hall\n,Fern,shade\n,Fern,shade\n";

    const { added, changes, unchanged } = await compare("csv", file, [
      { id: 1n, name: "Fern", tag: "shade" },
      { id: 2n, name: "Fern", tag: "shade" },
    ]);

    expect(changes).toEqual(["2: Fern, tag shade → hall"]);
    expect(unchanged).toBe(1);
    expect(added).toEqual([{ name: "Fern", tag: "shade" }]);
  });

  test("is a plant with its name, whatever its tag, without a column of tags", async () => {
    const { added, unchanged } = await compare("csv", "name\nFern\nFern\nFern\n", [
      { id: 1n, name: "Fern", tag: "shade" },
      { id: 2n, name: "Fern", tag: "hall" },
    ]);

    expect(unchanged).toBe(2);
    expect(added).toEqual([{ name: "Fern" }]);
  });

  test("leaves a plant to a later row that has its tag, too", async () => {
    const file = '{"name":"Fern"}\n{"name":"Fern","tag":"shade"}\n';

    const { added, unchanged } = await compare("jsonl", file, [
      { id: 1n, name: "Fern", tag: "shade" },
      { id: 2n, name: "Fern", tag: "hall" },
    ]);

    expect(unchanged).toBe(2);
    expect(added).toEqual([]);
  });

  test("is still the plant if a spreadsheet has rewritten its cells", async () => {
    const file = 'name,tag\n7,1.1\n"two\nlines",ab\n7,1.1\n';

    const { added, unchanged } = await compare("csv", file, [
      { id: 1n, name: "007", tag: "1.10" },
      { id: 2n, name: "two\r\nlines", tag: "a\tb" },
    ]);

    expect(unchanged).toBe(2);
    // The third row is like the first one, whose plant is taken.
    expect(added).toEqual([{ name: "7", tag: "1.1" }]);
  });

  test("is still the plant if a spreadsheet has made a date of its cell", async () => {
    const { unchanged, added } = await compare("csv", "name,tag\nFern,01/02/26\nIvy,2026-02-01\n", [
      { id: 1n, name: "Fern", tag: "1/2" },
      { id: 2n, name: "Ivy", tag: "2.1." },
    ]);
    expect({ unchanged, added }).toEqual({ unchanged: 2, added: [] });
  });

  test("is one plant, even if its date could be the days of two", async () => {
    const { unchanged, added } = await compare("csv", "name,tag\nFern,01/02/03\n", [
      { id: 1n, name: "Fern", tag: "1/2" },
      { id: 2n, name: "Fern", tag: "2/3" },
    ]);
    expect({ unchanged, added }).toEqual({ unchanged: 1, added: [] });
  });
});

describe("a row with an id that isn't here", () => {
  test("is added with its id, and counted apart", async () => {
    const { added, description } = await compare("csv", "id,name\n7,Fern\n8,Moss\n,Ivy\n", []);

    expect(added).toEqual([{ id: 7n, name: "Fern" }, { id: 8n, name: "Moss" }, { name: "Ivy" }]);
    expect(description).toBe(
      "3 rows: 1 new, 0 change, 0 as they are. 2 new with ids of their own: deleted since the export?",
    );
  });

  test("is refused if it has no name", async () => {
    const { refused, description } = await compare("csv", "id,tag\n7,shade\n", []);

    expect(refused).toEqual([
      { line: 2, error: "there is no plant 7, and the row has no name to add it with" },
    ]);
    expect(description).toBe("1 row: 0 new, 0 change, 0 as they are, 1 refused.");
  });

  // A spreadsheet keeps 15 digits of a number, and may change the others.
  test("is added if a CSV has an id of 15 digits", async () => {
    const { added } = await compare("csv", "id,name\n-123456789012345,Fern\n", []);

    expect(added).toMatchObject([{ id: -123456789012345n }]);
  });

  test("is refused if a CSV has an id of 16 digits", async () => {
    const { added, refused } = await compare("csv", "id,name\n1234567890123456,Fern\n", []);

    expect(added).toEqual([]);
    expect(refused).toEqual([
      {
        line: 2,
        error:
          "there is no plant 1234567890123456. A spreadsheet may have changed its last " +
          "digits: it keeps 15",
      },
    ]);
  });

  test("is added if JSON has an id of 16 digits", async () => {
    const { added } = await compare("json", '{"id":1234567890123456,"name":"Fern"}', []);

    expect(added).toMatchObject([{ id: 1234567890123456n }]);
  });
});

// As the plant is here, a spreadsheet has kept its digits.
test("a CSV can change a plant with an id of 16 digits", async () => {
  const { changes } = await compare("csv", "id,name\n1234567890123456,Moss\n", [
    { id: 1234567890123456n, name: "Fern", tag: "" },
  ]);

  expect(changes).toEqual(["1234567890123456: Fern → Moss"]);
});

describe("a cell that differs only as a spreadsheet writes it", () => {
  const cells = [
    { kind: "leading zeros", before: "007", after: "7" },
    { kind: "an exponent", before: "1E5", after: "100000" },
    { kind: "a last zero", before: "1.10", after: "1.1" },
    { kind: "a formula", before: "=1+1", after: "2" },
    { kind: "a date", before: "1/2", after: "01/02/26" },
    { kind: "a time", before: "12:30", after: "12:30:00 PM" },
    { kind: "a percentage", before: "10%", after: "10.00%" },
    { kind: "a line break", before: "a\r\nb", after: "a\nb" },
    { kind: "a tab", before: "a\tb", after: "ab" },
  ];

  test.each(cells)("is no change in a CSV: $kind", async ({ before, after }) => {
    const file = renderCsvRecord(["id", "name", "tag"]) + renderCsvRecord(["7", after, after]);

    const { changes, unchanged } = await compare("csv", file, [
      { id: 7n, name: before, tag: before },
    ]);

    expect(changes).toEqual([]);
    expect(unchanged).toBe(1);
  });

  test.each(cells)("is a change in JSON: $kind", async ({ before, after }) => {
    const file = JSON.stringify({ id: 7, name: after });

    const { changes } = await compare("jsonl", file, [{ id: 7n, name: before, tag: before }]);

    expect(changes).toHaveLength(1);
  });
});

test("changes that a spreadsheet may have made come first, and are counted apart", async () => {
  const file = "id,name,tag\n1,Tree fern,hall\n2,Moss,2025\n3,3,\n";

  const { changes, description } = await compare("csv", file, [
    { id: 1n, name: "Fern", tag: "hall" },
    { id: 2n, name: "Moss", tag: "2024" },
    { id: 3n, name: "=SUM(1,2)", tag: "" },
  ]);

  expect(changes).toEqual(["2: Moss, tag 2024 → 2025", "3: =SUM(1,2) → 3", "1: Fern → Tree fern"]);
  expect(description).toBe(
    "3 rows: 0 new, 3 change, 0 as they are. 2 of the changes are of a number, a date or a " +
      "formula: yours, or the spreadsheet's?",
  );
});
