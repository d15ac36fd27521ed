/** Which cells a spreadsheet may have rewritten, and which a person must have edited. */
import { expect, test } from "bun:test";
import { isComputable, isSameCell } from "./spreadsheet.ts";

test.each([
  ["007", "7"],
  ["1E5", "100000"],
  ["1E5", "1.00E+05"],
  ["1E5", "1,00E+05"],
  ["1.10", "1.1"],
  ["-0", "0"],
  [".5", "0.5"],
  ["5.", "5"],
  ["+1.50", "1.5"],
  ["1e-7", "0.0000001"],
  ["1,000.50", "1000.5"],
  ["1,10", "1,1"],
  ["=1+1", "2"],
  ["= 10 - 2.5", "7.5"],
  ["=0.1+0.2", "0.3"],
  ["10%", "10.00%"],
  ["10%", "10,00 %"],
  ["100 %", "100%"],
  ["12:30", "12:30:00"],
  ["12:30", "12:30:00 PM"],
  ["1:2:3", "01:02:03 AM"],
  ["00:15", "12:15:00 AM"],
  ["1/2", "01/02/26"],
  ["1/2", "01/02/2026"],
  ["1.2.", "01.02.2026"],
  ["1/2", "2026-01-02"],
  ["two\r\nlines", "two\nlines"],
  ["two\rlines", "two\nlines"],
  ["a\tb", "ab"],
])("a spreadsheet writes %j as %j", (before, after) => {
  expect(isSameCell(before, after)).toBe(true);
});

test.each([
  ["Fern", "fern"],
  ["Fern", "Fern "],
  ["2024", "2025"],
  ["1,000", "1"],
  ["1234567890123456", "1234567890123457"],
  ["7", "7%"],
  ["7", "0:07"],
  ["=1+1", "3"],
  ["=SUM(1,2)", "3"],
  ["1/2", "02/01/26"],
  ["1/2", "3/2/26"],
  ["01/02/25", "01/02/26"],
  ["12:30", "12:31:00"],
  ["", "0"],
  [".", ","],
  ["e", "0"],
  ["-", "0"],
])("a spreadsheet doesn't write %j as %j, so a person did", (before, after) => {
  expect(isSameCell(before, after)).toBe(false);
});

test.each([
  "2024",
  "-7",
  "+49 30",
  "1/2",
  "12:30 PM",
  "10%",
  "$5",
  "1.2.2024",
  "5 Jan",
  "true",
  "=A1",
  "@x",
])("%j looks like a number, a date or a formula", (text) => {
  expect(isComputable(text)).toBe(true);
});

test.each(["", "Fern", "Fern 7", "7 ferns", "盆栽", "true fern", "Marigold", "Mayflower 7", "½"])(
  "%j doesn't look like a number, a date or a formula",
  (text) => {
    expect(isComputable(text)).toBe(false);
  },
);
