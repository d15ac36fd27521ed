/** What a file would change in a garden, before anything is sent. */
import { expect, test } from "bun:test";
import { checkUpdateRows } from "./check.ts";
import { Comparison, describeComparison, renderChange } from "./comparison.ts";
import { renderCsvRecord } from "./csv.ts";
import { type Format, readUpdateRows } from "./rows.ts";

type Garden = readonly (readonly [id: number | bigint, name: string, tag?: string])[];

/** Compares a file with a garden, whose plants come in two pages. */
async function compare(text: string, garden: Garden, format: Format = "csv") {
  const check = await checkUpdateRows(readUpdateRows([new TextEncoder().encode(text)], format));
  expect(check.invalid).toEqual([]);
  const comparison = new Comparison(check.valid, format);
  const plants = garden.map(([id, name, tag = ""]) => ({ id: BigInt(id), name, tag }));
  const half = plants.length / 2;
  comparison.take(plants.slice(0, half));
  comparison.take(plants.slice(half));
  comparison.finish();
  const { added, changes, unchanged, refused } = comparison;
  return {
    added: added.map(({ draft }) => draft),
    changes: changes.map(renderChange),
    unchanged,
    refused: refused.map(({ line, error }) => `line ${line}: ${error}`),
    text: describeComparison(comparison),
    comparison,
  };
}

test("a row with the id of a plant changes what it says otherwise, and says so", async () => {
  const garden: Garden = [
    [7, "Fern", "shade"],
    [8, "Moss", "shade"],
    [9, "Ivy"],
    [10, "Rose", "sun"],
  ];
  const file = "id,name,tag\n7,Boston fern,hall\n8,Moss,\n9,Ivy,pond\n10,Rose,sun\n";
  expect(await compare(file, garden)).toMatchObject({
    changes: [
      "7: Fern → Boston fern, tag shade → hall",
      "8: Moss, tag shade → (none)",
      "9: Ivy, tag (none) → pond",
    ],
    text: "4 rows: 0 new, 3 change, 1 as it is.",
  });
});

test.each([
  ["a column", "csv", "tag,id\nhall,7\n", "7: Fern, tag shade → hall"],
  ["another", "csv", "id;name\n7;Oak\n", "7: Fern → Oak"],
  ["a member", "jsonl", '{"id":7,"tag":"hall"}', "7: Fern, tag shade → hall"],
] as const)("without %s, the plant keeps that field", async (_what, format, text, change) => {
  const { changes, comparison } = await compare(text, [[7, "Fern", "shade"]], format);
  expect(changes).toEqual([change]);
  expect(Object.keys(comparison.changes[0]?.set ?? {})).toHaveLength(1);
});

test("a row without an id is a plant with its name and tag that no other row is, or is added", async () => {
  const garden: Garden = [
    [1, "Fern", "shade"],
    [2, "Fern", "shade"],
    [3, "Moss"],
  ];
  const rows = ["2,Fern,hall", ",Fern,shade", ",Fern,shade", ",Moss,", ",Moss,shade"];
  const { added, unchanged, changes } = await compare(`id,name,tag\n${rows.join("\n")}\n`, garden);
  expect(added).toEqual([
    { name: "Fern", tag: "shade" },
    { name: "Moss", tag: "shade" },
  ]);
  expect([unchanged, changes]).toEqual([2, ["2: Fern, tag shade → hall"]]);
});

test("a row without an id and without a tag is a plant with its name, whatever its tag", async () => {
  const garden: Garden = [
    [1, "Fern", "shade"],
    [2, "Fern", "hall"],
  ];
  const { added, unchanged } = await compare("name\nFern\nFern\nFern\n", garden);
  expect([added, unchanged]).toEqual([[{ name: "Fern" }], 2]);
  // The one with a tag comes first, wherever it is.
  const lines = '{"name":"Fern"}\n{"name":"Fern","tag":"shade"}\n';
  expect(await compare(lines, garden, "jsonl")).toMatchObject({ added: [], unchanged: 2 });
});

test("a row with an id that isn't here is added with it, and counted apart", async () => {
  const file = "id,name\n7,Fern\n8,Moss\n,Ivy\n";
  const { added, text } = await compare(file, []);
  expect(added).toEqual([{ id: 7n, name: "Fern" }, { id: 8n, name: "Moss" }, { name: "Ivy" }]);
  expect(text).toBe(
    "3 rows: 1 new, 0 change, 0 as they are. 2 new with ids of their own: deleted since the export?",
  );
});

test("an id that isn't here is refused without a name, and in a CSV with more than 15 digits", async () => {
  expect(await compare("id,tag\n7,shade\n", [])).toMatchObject({
    refused: ["line 2: there is no plant 7, and the row has no name to add it with"],
    text: "1 row: 0 new, 0 change, 0 as they are, 1 refused.",
  });
  const ids = ["-123456789012345", "1234567890123456"];
  const file = `id,name\n${ids.map((id) => `${id},Fern\n`).join("")}`;
  expect(await compare(file, [])).toMatchObject({
    added: [{ id: BigInt(ids[0] as string) }],
    refused: [
      "line 3: there is no plant 1234567890123456. A spreadsheet may have changed its last " +
        "digits: it keeps 15",
    ],
  });
  // It's here, so its digits are right.
  const here = await compare(`id,name\n${ids[1]},Moss\n`, [[BigInt(ids[1] as string), "Fern"]]);
  expect(here.changes).toEqual([`${ids[1]}: Fern → Moss`]);
  expect((await compare(`{"id":${ids[1]},"name":"Fern"}`, [], "json" as const)).added).toHaveLength(
    1,
  );
});

test("in a CSV, what only a spreadsheet does to a cell is no change; in JSON, it is", async () => {
  const before = ["007", "1E5", "1.10", "=1+1", "1/2", "12:30", "10%", "a\r\nb", "a\tb"];
  const after = ["7", "100000", "1.1", "2", "01/02/26", "12:30:00 PM", "10.00%", "a\nb", "ab"];
  const garden: Garden = before.map((text, index) => [index, text, text]);
  const rows = after.map((text, index) => [String(index), text, text]);
  const sheet = [["id", "name", "tag"], ...rows].map(renderCsvRecord).join("");
  expect(await compare(sheet, garden)).toMatchObject({ changes: [], unchanged: before.length });
  const lines = rows.map(([id, name]) => `{"id":${id},"name":${JSON.stringify(name)}}\n`);
  expect((await compare(lines.join(""), garden, "jsonl")).changes).toHaveLength(before.length);
});

test("a row without an id that a spreadsheet has rewritten is still the same plant", async () => {
  const garden: Garden = [
    [1, "007", "1.10"],
    [2, "two\r\nlines", "a\tb"],
  ];
  const file = 'name,tag\n7,1.1\n"two\nlines",ab\n7,1.1\n';
  expect(await compare(file, garden)).toMatchObject({
    added: [{ name: "7", tag: "1.1" }],
    unchanged: 2,
  });
});

test("changes that a spreadsheet may have made come first, and are counted apart", async () => {
  const garden: Garden = [
    [1, "Fern", "hall"],
    [2, "Moss", "2024"],
    [3, "=SUM(1,2)"],
  ];
  const file = "id,name,tag\n1,Tree fern,hall\n2,Moss,2025\n3,3,\n";
  expect(await compare(file, garden)).toMatchObject({
    changes: ["2: Moss, tag 2024 → 2025", "3: =SUM(1,2) → 3", "1: Fern → Tree fern"],
    text:
      "3 rows: 0 new, 3 change, 0 as they are. 2 of the changes are of a number, a date or a " +
      "formula: yours, or the spreadsheet's?",
  });
});
