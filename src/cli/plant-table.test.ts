/** The table of plants: it fits the terminal, and cannot harm it. */
import { expect, test } from "bun:test";
import { fit, PlantTable, showSafely } from "./plant-table.ts";

test("aligns by what characters take on a screen, and cuts what is too long", () => {
  const table = new PlantTable(40);
  const first = table.render([
    { id: 7n, name: "盆栽", tag: "shade" },
    { id: 12n, name: "A name that goes on and on and on", tag: "a tag that is long" },
  ]);
  expect(first.split("\n")).toEqual([
    "ID  NAME                     TAG",
    " 7  盆栽                     shade",
    "12  A name that goes on an…  a tag that…",
    "",
  ]);
  for (const line of first.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(40);
  expect(table.render([{ id: 13n, name: "Fern", tag: "" }])).toBe("13  Fern\n");
});

test("is readable in a narrow or unknown terminal", () => {
  const plants = [{ id: 2n ** 63n - 1n, name: "Monstera deliciosa", tag: "" }];
  expect(new PlantTable(10).render(plants)).toContain("Monstera delici");
  expect(new PlantTable().render(plants)).toContain("Monstera deliciosa");
});

test.each([
  ["\x1b[2J", "\\u001b[2J"],
  ["a\nb\x7f\x9b", "a\\u000ab\\u007f\\u009b"],
  ["\u202Eevil", "\\u202eevil"],
  ["👩‍🌾 ü", "👩‍🌾 ü"],
])("shows %j without sending it to the terminal", (text, shown) => {
  expect(showSafely(text)).toBe(shown);
});

test.each([
  ["abc", 3, "abc"],
  ["abc", 5, "abc  "],
  ["abcd", 3, "ab…"],
  ["盆栽盆栽", 4, "盆… "],
  ["👩‍🌾👩‍🌾👩‍🌾", 5, "👩‍🌾👩‍🌾…"],
  ["", 0, ""],
])("fits %j into %d columns", (text, width, fitted) => {
  expect(fit(text, width)).toBe(fitted);
});
