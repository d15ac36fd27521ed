/** The plants loaded so far, and which of them are selected: what the page itself doesn't show. */
import { describe, expect, test } from "bun:test";
import type { Plant, Query } from "./api.ts";
import { Garden } from "./garden.ts";
import { Selection } from "./selection.ts";

function plant(id: bigint, tag = ""): Plant {
  return { id, name: `Plant ${id}`, tag };
}

function makeGarden(query: Query = {}): Garden {
  return new Garden(query, ({ tag }) => query.tag === undefined || tag === query.tag);
}

function idsOf(garden: Garden): bigint[] {
  return garden.plants.map(({ id }) => id);
}

describe("a garden", () => {
  test("keeps plants in the order of their ids, over the whole range, whatever order they come in", () => {
    const ids = [-(2n ** 63n), 2n, 10n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n];
    const pages = [
      [ids[1], ids[4]],
      [ids[3], ids[0], ids[2]],
      [ids[5], ids[2]],
    ] as bigint[][];
    for (const order of [undefined, "desc"] as const) {
      const garden = makeGarden({ order });
      for (const page of pages)
        garden.addPage({ plants: page.map((id) => plant(id)), next: undefined });
      expect(idsOf(garden)).toEqual(order === "desc" ? ids.toReversed() : ids);
    }
  });

  test("is not brought back what was removed by a page, only by putting it there", () => {
    const garden = makeGarden();
    garden.put([plant(7n)]);
    garden.remove([plant(7n)]);
    garden.addPage({ plants: [plant(6n), plant(7n), plant(8n)], next: undefined });
    expect(idsOf(garden)).toEqual([6n, 8n]);
    garden.put([plant(7n)]);
    garden.put([plant(7n)]);
    expect(idsOf(garden)).toEqual([6n, 7n, 8n]);
  });

  test("takes only plants that match, and drops one that no longer does", () => {
    const garden = makeGarden({ tag: "hall" });
    garden.addPage({ plants: [plant(1n, "hall"), plant(2n, "hall")], next: undefined });
    garden.put([plant(3n, "hall"), plant(4n, "porch"), plant(1n, "porch")]);
    expect(idsOf(garden)).toEqual([2n, 3n]);
  });

  test("leaves a plant to the page that will bring it, in either order", () => {
    for (const [order, near, far] of [
      [undefined, 4n, 6n],
      ["desc", 6n, 4n],
    ] as const) {
      const garden = makeGarden({ order });
      garden.addPage({ plants: [], next: 5n });
      garden.put([plant(near), plant(far)]);
      expect(idsOf(garden)).toEqual([near]);
    }
  });
});

describe("a selection", () => {
  const plants = [1n, 2n, 3n, 4n, 5n].map((id) => plant(id));
  const selected = (selection: Selection) =>
    plants.filter((each) => selection.has(each)).map(({ id }) => Number(id));

  test("takes a range from where it started, upwards and downwards", () => {
    const selection = new Selection();
    selection.toggle(plants, 2, true);
    selection.toggle(plants, 4, true);
    expect(selected(selection)).toEqual([3, 4, 5]);
    selection.toggle(plants, 0, true);
    expect(selected(selection)).toEqual([1, 2, 3, 4, 5]);
    selection.toggle(plants, 1, false);
    selection.toggle(plants, 3, true);
    expect(selected(selection)).toEqual([1, 5]);
  });

  test("of all plants has those that aren't loaded, too, but not the ones taken out", () => {
    const selection = new Selection();
    selection.toggle(plants, 0, false);
    selection.setAll(true);
    selection.toggle(plants, 1, false);
    selection.toggle(plants, 2, true);
    expect(selected(selection)).toEqual([1, 4, 5]);
    expect(selection.has({ id: 99n })).toBe(true);
    expect([selection.count(20), selection.count(undefined)]).toEqual([18, undefined]);
  });
});
