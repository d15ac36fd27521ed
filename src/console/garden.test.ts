/** The plants loaded so far: their order, the filter and the counts of tags. */
import { expect, test } from "bun:test";
import { Garden } from "./garden.ts";

function plant(id: bigint, name = `Plant ${id}`, tag = "") {
  return { id, name, tag };
}

const everything = { text: "", tag: undefined };

function idsOf(garden: Garden): bigint[] {
  return garden.select(everything).map(({ id }) => id);
}

test("keeps plants in the order of their ids, over the whole range, whatever order they come in", () => {
  const garden = new Garden();
  garden.add([plant(2n), plant(9007199254740993n)]);
  garden.add([plant(9007199254740992n), plant(-9223372036854775808n), plant(10n)]);
  garden.add([plant(9223372036854775807n)]);
  expect(idsOf(garden)).toEqual([
    -9223372036854775808n,
    2n,
    10n,
    9007199254740992n,
    9007199254740993n,
    9223372036854775807n,
  ]);
});

test("takes a plant once, and none that was removed is left", () => {
  const garden = new Garden();
  garden.add([plant(1n), plant(2n)]);
  garden.add([plant(2n, "Other"), plant(3n)]);
  garden.remove(1n);
  garden.remove(7n);
  expect(garden.select(everything)).toEqual([plant(2n), plant(3n)]);
  expect(garden.size).toBe(2);
});

test("a page does not bring back what was removed, unless it is put there again", () => {
  const garden = new Garden();
  garden.put([plant(7n)]);
  garden.remove(7n);
  garden.add([plant(6n), plant(7n), plant(8n)]);
  expect(idsOf(garden)).toEqual([6n, 8n]);
  garden.put([plant(7n)]);
  expect(idsOf(garden)).toEqual([6n, 7n, 8n]);
});

test("a plant that is surely there takes the place of another that had its id", () => {
  const garden = new Garden();
  garden.add([plant(1n), plant(2n, "Fern", "hall")]);
  garden.put([plant(2n, "Fig", "porch")]);
  expect(garden.select(everything)).toEqual([plant(1n), plant(2n, "Fig", "porch")]);
  expect(garden.countTags()).toContainEqual(["porch", 1]);
});

test.each([
  ["", [1n, 2n, 3n]],
  ["aloe", [1n]],
  ["ALOË", [1n]],
  ["kitchen aloe", [1n]],
  ["aloe hall", []],
  ["3", [3n]],
  ["  ", [1n, 2n, 3n]],
  ["vera\nkitchen", [1n]],
])("finds by %p the plants with the ids %p", (text, ids) => {
  const garden = new Garden();
  garden.add([plant(1n, "Aloë vera", "kitchen"), plant(2n, "Fern", "hall"), plant(3n, "Fig")]);
  expect(garden.select({ text, tag: undefined }).map(({ id }) => id)).toEqual(ids);
});

test("finds the plants of one tag, and those of none", () => {
  const garden = new Garden();
  garden.add([plant(1n, "Fern", "hall"), plant(2n, "Fern"), plant(3n, "Hall", "")]);
  expect(garden.select({ text: "", tag: "hall" })).toHaveLength(1);
  expect(garden.select({ text: "", tag: "" })).toHaveLength(2);
});

test("counts tags, the most frequent first and then as people count", () => {
  const garden = new Garden();
  garden.add([plant(1n, "a", "bed 11"), plant(2n, "b", "bed 2"), plant(3n, "c", "hall")]);
  garden.add([plant(4n, "d", "hall")]);
  const counts = garden.countTags();
  expect(counts).toEqual([
    ["hall", 2],
    ["bed 2", 1],
    ["bed 11", 1],
  ]);
  expect(garden.countTags()).toBe(counts);
  garden.remove(1n);
  expect(garden.countTags()).toHaveLength(2);
});
