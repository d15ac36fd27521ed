/** The chronicle finds lists that were never true at one moment, and none among those that were. */
import { beforeEach, expect, test } from "bun:test";
import { Chronicle } from "./chronicle.ts";

const fern = { id: "1", name: "fern" };
const moss = { id: "2", name: "moss" };
const reed = { id: "3", name: "reed" };

let chronicle: Chronicle;

/** Fern is there; then moss is created, and after that fern deleted; then reed is created. */
beforeEach(() => {
  chronicle = new Chronicle();
  for (const [name, standing] of [
    ["fern", "open"],
    ["fern", "there"],
    ["moss", "open"],
    ["moss", "there"],
    ["fern", "open"],
    ["fern", "gone"],
    ["reed", "open"],
    ["reed", "there"],
  ] as const) {
    chronicle.note(name, standing);
  }
  chronicle.noteId("fern", "1");
});

test.each([
  ["before anything was sent", 0, 8, []],
  ["after the first create", 2, 8, [fern]],
  ["while moss was on its way", 2, 3, [fern, moss]],
  ["while fern was being deleted, with it", 2, 5, [fern, moss]],
  ["while fern was being deleted, without it", 2, 5, [moss]],
  ["while reed was on its way", 0, 7, [moss, reed]],
  ["at the end", 8, 8, [moss, reed]],
])("all of it was so %s", (_, from, to, plants) => {
  expect(chronicle.auditMoment(plants, from, to)).toEqual([]);
});

test.each([
  ["an older moment than the first", 4, 8, [fern], ["moss: missing"]],
  ["a later moment than the last", 0, 5, [moss, reed], ["reed: not sent yet"]],
  ["two moments at once", 0, 8, [fern, moss, reed], ["reed: not sent yet"]],
  ["a later one without an earlier one", 7, 8, [reed], ["moss: missing"]],
  ["a plant that nobody sent", 8, 8, [moss, reed, { id: "9", name: "ivy" }], ["ivy: not sent yet"]],
  ["a plant twice", 8, 8, [moss, reed, { ...reed, id: "4" }], ["a plant is there twice"]],
  ["another id", 2, 2, [{ ...fern, id: "7" }], ["fern has the id 7, not 1"]],
  ["another tag", 2, 2, [{ ...fern, tag: "other" }], ["changed: fern"]],
])("finds %s", (_, from, to, plants, faults) => {
  expect(chronicle.auditMoment(plants, from, to)).toEqual(faults);
});
