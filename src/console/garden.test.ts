/** The plants that were loaded: their order, the filter and the counts of tags. */
import { expect, test } from "bun:test";
import { Garden } from "./garden.ts";

function plant(id: string, name = `Plant ${id}`, tag = "") {
  return { id, name, tag };
}

const everything = { text: "", tag: undefined };

function idsOf(garden: Garden): string[] {
  return garden.select(everything).map(({ id }) => id);
}

test("keeps plants in the order of their ids, over the whole range, whatever order they come in", () => {
  const garden = new Garden();
  garden.add([plant("2"), plant("9007199254740993")]);
  garden.add([plant("9007199254740992"), plant("-9223372036854775808"), plant("10")]);
  garden.add([plant("9223372036854775807")]);
  expect(idsOf(garden)).toEqual([
    "-9223372036854775808",
    "2",
    "10",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
  ]);
});

test("takes a plant once, and none that was removed is left", () => {
  const garden = new Garden();
  garden.add([plant("1"), plant("2")]);
  garden.add([plant("2", "Other"), plant("3")]);
  garden.remove("1");
  garden.remove("7");
  expect(garden.select(everything)).toEqual([plant("2"), plant("3")]);
  expect(garden.size).toBe(2);
});

test("a page does not bring back what was removed, unless it is put there again", () => {
  const garden = new Garden();
  garden.put([plant("7")]);
  garden.remove("7");
  garden.add([plant("6"), plant("7"), plant("8")]);
  expect(idsOf(garden)).toEqual(["6", "8"]);
  garden.put([plant("7")]);
  expect(idsOf(garden)).toEqual(["6", "7", "8"]);
});

test("a plant that is surely there takes the place of another that had its id", () => {
  const garden = new Garden();
  garden.add([plant("1"), plant("2", "Fern", "hall")]);
  garden.put([plant("2", "Fig", "porch")]);
  expect(garden.select(everything)).toEqual([plant("1"), plant("2", "Fig", "porch")]);
  expect(garden.countTags()).toContainEqual(["porch", 1]);
});

test.each([
  ["", ["1", "2", "3"]],
  ["aloe", ["1"]],
  ["ALOË", ["1"]],
  ["kitchen aloe", ["1"]],
  ["aloe hall", []],
  ["3", ["3"]],
  ["  ", ["1", "2", "3"]],
  ["vera\nkitchen", ["1"]],
])("finds by %p the plants %p", (text, ids) => {
  const garden = new Garden();
  garden.add([plant("1", "Aloë vera", "kitchen"), plant("2", "Fern", "hall"), plant("3", "Fig")]);
  expect(garden.select({ text, tag: undefined }).map(({ id }) => id)).toEqual(ids);
});

test("finds the plants of one tag, and those of none", () => {
  const garden = new Garden();
  garden.add([plant("1", "Fern", "hall"), plant("2", "Fern"), plant("3", "Hall", "")]);
  expect(garden.select({ text: "", tag: "hall" })).toHaveLength(1);
  expect(garden.select({ text: "", tag: "" })).toHaveLength(2);
});

test("counts tags, the most frequent first and then as people count", () => {
  const garden = new Garden();
  garden.add([plant("1", "a", "bed 11"), plant("2", "b", "bed 2"), plant("3", "c", "hall")]);
  garden.add([plant("4", "d", "hall")]);
  const counts = garden.countTags();
  expect(counts).toEqual([
    ["hall", 2],
    ["bed 2", 1],
    ["bed 11", 1],
  ]);
  expect(garden.countTags()).toBe(counts);
  garden.remove("1");
  expect(garden.countTags()).toHaveLength(2);
});
