/** The ledger finds every kind of broken promise, and none in a list that keeps them all. */
import { beforeEach, expect, test } from "bun:test";
import { Ledger, tagOf } from "./ledger.ts";

let ledger: Ledger;

beforeEach(() => {
  ledger = new Ledger();
  ledger.note("fern", "there");
  ledger.noteId("fern", "1");
  ledger.note("moss", "gone");
  ledger.note("reed", "open");
});

const fern = { id: "1", name: "fern" };
const reed = { id: "3", name: "reed" };

test.each([
  ["keeps all promises, with the open one", [fern, reed], []],
  ["keeps all promises, without the open one", [fern], []],
  ["shows the tag that was sent", [{ ...fern, tag: tagOf("fern") }], []],
  ["shows another tag", [{ ...fern, tag: "" }], ["changed: fern"]],
  ["lacks a plant that was answered", [reed], ["lost: fern"]],
  ["holds a plant that was deleted", [fern, { id: "2", name: "moss" }], ["back again: moss"]],
  ["holds an open plant twice", [fern, reed, { ...reed, id: "4" }], ["duplicated: reed"]],
  ["holds a plant under another id", [{ ...fern, id: "5" }], ["fern has the id 5, not 1"]],
  ["holds a plant that nobody sent", [fern, { id: "6", name: "ivy" }], ["never sent: ivy"]],
])("of a list that %s", (_, plants, faults) => {
  expect(ledger.audit(plants)).toEqual(faults);
});

test("an id that two plants got, and a plant that got two ids", () => {
  ledger.noteId("reed", "1");
  ledger.noteId("reed", "3");
  expect(ledger.audit([fern])).toEqual([
    "reed and fern both got the id 1",
    "reed got the ids 1, 3",
  ]);
});
