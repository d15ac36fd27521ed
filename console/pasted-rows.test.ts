/** Pasted text: what a spreadsheet copies, and lists that people have written. */
import { expect, test } from "bun:test";
import { readPastedRows } from "./pasted-rows.ts";

/** The plants of pasted text, with a message in the place of each row that is refused. */
function readPlants(text: string) {
  return [...readPastedRows(text)].map((row) => ("draft" in row ? row.draft : row.error));
}

test("lines without tabs are names, without empty lines and surrounding spaces", () => {
  expect(readPlants("Fern\r\n\r\n  Ivy \nFicus, lyrata\n")).toEqual([
    { name: "Fern" },
    { name: "Ivy" },
    { name: "Ficus, lyrata" },
  ]);
});

test("list marks aren't part of the names", () => {
  expect(readPlants("- Fern\n- Ivy\n")).toEqual([{ name: "Fern" }, { name: "Ivy" }]);
  expect(readPlants("1. Fern\n2. Ivy\n")).toEqual([{ name: "Fern" }, { name: "Ivy" }]);
});

test("a mark that not every line has belongs to the name", () => {
  expect(readPlants("- Fern\nIvy\n")).toEqual([{ name: "- Fern" }, { name: "Ivy" }]);
});

test("the columns of a spreadsheet are name and tag", () => {
  expect(readPlants("Fern\tshade\r\nIvy\t\r\n")).toEqual([
    { name: "Fern", tag: "shade" },
    { name: "Ivy", tag: "" },
  ]);
});

test("a first row of column names decides what the columns are, in any order", () => {
  expect(readPlants("Tag\tID\tName\nshade\t7\tFern\n\t\tIvy\n")).toEqual([
    { id: 7n, name: "Fern", tag: "shade" },
    { name: "Ivy", tag: "" },
  ]);
  expect(readPlants("name\nFern")).toEqual([{ name: "Fern" }]);
});

test("a cell with a line break is in quotes, and its own quotes are doubled", () => {
  expect(readPlants('"Fern\nthe ""old"" one"\tshade\nIvy\t\n')).toEqual([
    { name: 'Fern\nthe "old" one', tag: "shade" },
    { name: "Ivy", tag: "" },
  ]);
});

test("other quotes belong to the name", () => {
  expect(readPlants('Acer "Bloodgood"\n"Ivy"\n5" pot\n')).toEqual([
    { name: 'Acer "Bloodgood"' },
    { name: '"Ivy"' },
    { name: '5" pot' },
  ]);
});

test("a CSV file that was copied as text is read as CSV", () => {
  expect(readPlants('name,tag\n"Ficus, lyrata",hall\n')).toEqual([
    { name: "Ficus, lyrata", tag: "hall" },
  ]);
});

test("a row with too many cells is refused, with its line", () => {
  const [, second] = readPastedRows("Fern\tshade\nIvy\twall\ttwice a week\n");

  expect(second).toEqual({
    line: 2,
    error: 'there is more than name and tag: "twice a week"',
  });
});

test("a row with an invalid id is refused", () => {
  expect(readPlants("id\tname\n7b\tFern")).toEqual(["the id must be a whole number"]);
});
