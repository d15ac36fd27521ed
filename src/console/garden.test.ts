/** The plants loaded so far, and which of them are selected: what the page itself doesn't show. */
import { describe, expect, test } from "bun:test";
import type { Plant, PlantEvent, Query } from "./api.ts";
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

describe("what others do", () => {
  let seq = 0;
  function event(what: "created" | "replaced" | "deleted", of: Plant): PlantEvent {
    return { seq: ++seq, type: `plant.${what}`, at: "", user: "bob", plant: of };
  }

  /** Ten plants, in a list that goes on, of which the fourth to the sixth are in view. */
  function makeViewed() {
    const garden = makeGarden({ tag: "hall" });
    const plants = Array.from({ length: 10 }, (_, index) => plant(BigInt(2 * index + 2), "hall"));
    garden.addPage({ plants, next: 20n });
    const follow = (...events: PlantEvent[]) => garden.follow(events, { first: 3, last: 5 });
    return { garden, follow };
  }

  test("removes what is out of view, and marks what is in view until it comes back", () => {
    const { garden, follow } = makeViewed();
    follow(
      ...[event("deleted", plant(2n, "hall")), event("deleted", plant(8n, "hall"))],
      ...[event("replaced", plant(10n, "porch")), event("replaced", plant(20n, "porch"))],
    );
    expect(idsOf(garden)).toEqual([4n, 6n, 8n, 10n, 12n, 14n, 16n, 18n]);
    const left = garden.plants.slice(1, 5).map((each): string => each.left ?? "");
    expect(left).toEqual(["", "deleted", "changed", ""]);
    expect(garden.size).toBe(6);
    follow(event("created", plant(8n, "hall")));
    expect(garden.size).toBe(7);
    garden.follow([], { first: 5, last: 7 });
    expect(idsOf(garden)).toEqual([4n, 6n, 8n, 12n, 14n, 16n, 18n]);
  });

  test("waits as its last event left it, until it is admitted, unless a later page brings it", () => {
    const { garden, follow } = makeViewed();
    follow(
      ...[3n, 5n, 7n, 21n].map((id) => event("created", plant(id, "hall"))),
      ...[event("deleted", plant(3n, "hall")), event("replaced", plant(5n, "porch"))],
    );
    expect(garden.waiting).toEqual([plant(7n, "hall")]);
    expect(garden.size).toBe(11);
    expect(garden.admit()).toEqual([7n]);
    expect(idsOf(garden).slice(2, 5)).toEqual([6n, 7n, 8n]);
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
