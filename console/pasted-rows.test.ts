/** Pasted text: what a spreadsheet copies, and lists that people have written. */
import { expect, test } from "bun:test";
import { readPastedRows } from "./pasted-rows.ts";

const drafts = (text: string) =>
  [...readPastedRows(text)].map((row) => ("draft" in row ? row.draft : row.error));

test("lines without tabs are names, without the empty lines and the spaces around", () => {
  expect(drafts("Fern\r\n\r\n  Ivy \nFicus, lyrata\n")).toEqual([
    { name: "Fern" },
    { name: "Ivy" },
    { name: "Ficus, lyrata" },
  ]);
});

test("the marks of a list are no part of the names, if every line has one", () => {
  expect(drafts("- Fern\n- Ivy\n")).toEqual([{ name: "Fern" }, { name: "Ivy" }]);
  expect(drafts("1. Fern\n2. Ivy\n")).toEqual([{ name: "Fern" }, { name: "Ivy" }]);
  expect(drafts("- Fern\nIvy\n")).toEqual([{ name: "- Fern" }, { name: "Ivy" }]);
});

test("the columns of a spreadsheet are name and tag", () => {
  expect(drafts("Fern\tshade\r\nIvy\t\r\n")).toEqual([
    { name: "Fern", tag: "shade" },
    { name: "Ivy", tag: "" },
  ]);
});

test("a first row of column names says what the columns are, in any order", () => {
  expect(drafts("Tag\tID\tName\nshade\t7\tFern\n\t\tIvy\n")).toEqual([
    { id: 7n, name: "Fern", tag: "shade" },
    { name: "Ivy", tag: "" },
  ]);
  expect(drafts("name\nFern")).toEqual([{ name: "Fern" }]);
});

test("a cell with a line break is in quotes, and its own quotes are doubled", () => {
  expect(drafts('"Fern\nthe ""old"" one"\tshade\nIvy\t\n')).toEqual([
    { name: 'Fern\nthe "old" one', tag: "shade" },
    { name: "Ivy", tag: "" },
  ]);
});

test("other quotes belong to the name", () => {
  expect(drafts('Acer "Bloodgood"\n"Ivy"\n5" pot\n')).toEqual([
    { name: 'Acer "Bloodgood"' },
    { name: '"Ivy"' },
    { name: '5" pot' },
  ]);
});

test("a CSV file that was copied as text is read as one", () => {
  expect(drafts('name,tag\n"Ficus, lyrata",hall\n')).toEqual([
    { name: "Ficus, lyrata", tag: "hall" },
  ]);
});

test("a row that doesn't fit its columns is refused, with its line", () => {
  const rows = [...readPastedRows("Fern\tshade\nIvy\twall\ttwice a week\n")];
  expect(rows[1]).toEqual({
    line: 2,
    error: 'there is more than name and tag: "twice a week"',
  });
  expect(drafts("id\tname\n7b\tFern")).toEqual(["the id must be a whole number"]);
});
