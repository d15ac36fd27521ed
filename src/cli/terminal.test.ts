/** Tables are aligned, and can't harm the terminal. */
import { expect, test } from "bun:test";
import { renderTable } from "./terminal.ts";

test("aligns columns by what characters take on a screen", () => {
  const rows = [
    ["ID", "NAME", "TAG"],
    ["7", "盆栽", "shade"],
    ["12", "Fern", ""],
  ];
  expect(renderTable(rows)).toBe("ID  NAME  TAG\n7   盆栽  shade\n12  Fern\n");
  expect(renderTable([])).toBe("");
});

test("a very long cell shifts only its own line", () => {
  const long = "x".repeat(200);
  expect(
    renderTable([
      [long, "a"],
      ["y", "b"],
    ]),
  ).toBe(`${long}  a\n${"y".padEnd(40)}  b\n`);
});
