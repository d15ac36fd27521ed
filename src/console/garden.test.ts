/** The plants loaded so far: their order, the filter and the counts of tags. */
import { expect, test } from "bun:test";
import type { Plant } from "./api.ts";
import { Garden } from "./garden.ts";

function plant(id: bigint, name = `Plant ${id}`, tag = "") {
  return { id, name, tag };
}

function addPage(garden: Garden, plants: Plant[]): void {
  garden.addPage({ plants, next: undefined });
}

function idsOf(garden: Garden): bigint[] {
  return garden.select("").map(({ id }) => id);
}

test("keeps plants in the order of their ids, over the whole range, whatever order they come in", () => {
  const garden = Garden.ofAll();
  addPage(garden, [plant(2n), plant(9007199254740993n)]);
  addPage(garden, [plant(9007199254740992n), plant(-9223372036854775808n), plant(10n)]);
  addPage(garden, [plant(9223372036854775807n)]);
  expect(idsOf(garden)).toEqual([
    -9223372036854775808n,
    2n,
    10n,
    9007199254740992n,
    9007199254740993n,
    9223372036854775807n,
  ]);
});

test("a page does not bring back what was removed, unless it is put there again", () => {
  const garden = Garden.ofAll();
  garden.put([plant(7n)]);
  garden.remove(7n);
  addPage(garden, [plant(6n), plant(7n), plant(8n)]);
  expect(idsOf(garden)).toEqual([6n, 8n]);
  garden.put([plant(7n)]);
  expect(idsOf(garden)).toEqual([6n, 7n, 8n]);
});

test.each([
  ["", [1n, 2n, 3n]],
  ["ALOE", [1n]],
  ["kitchen aloe", [1n]],
  ["aloe hall", []],
  ["3", [3n]],
  ["vera\nkitchen", [1n]],
])("finds by %p the plants with the ids %p", (text, ids) => {
  const garden = Garden.ofAll();
  addPage(garden, [plant(1n, "Aloë vera", "kitchen"), plant(2n, "Fern", "hall"), plant(3n, "Fig")]);
  expect(garden.select(text).map(({ id }) => id)).toEqual(ids);
});

test("of one tag takes only its plants, and knows what was removed from the others", () => {
  const all = Garden.ofAll();
  all.remove(1n);
  const hall = all.ofTag("hall");
  addPage(hall, [plant(1n, "Fern", "hall"), plant(2n, "Fig", "hall")]);
  hall.put([plant(3n, "Aloe", "hall"), plant(4n, "Rose", "porch")]);
  expect(idsOf(hall)).toEqual([2n, 3n]);
});
