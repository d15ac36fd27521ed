/** The plants loaded so far, in cases that a page can't easily be brought into. */
import { describe, expect, test } from "bun:test";
import type { Plant, PlantEvent } from "./api.ts";
import { Garden } from "./garden.ts";

function plant(id: bigint, tag = ""): Plant {
  return { id, name: `Plant ${id}`, tag };
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
      const garden = new Garden({ order });
      for (const page of pages)
        garden.addPage({ plants: page.map((id) => plant(id)), next: undefined });
      expect(idsOf(garden)).toEqual(order === "desc" ? ids.toReversed() : ids);
    }
  });

  test("takes only plants that match, and drops one that no longer does", () => {
    const garden = new Garden({ tag: "hall" });
    garden.addPage({ plants: [plant(1n, "hall"), plant(2n, "hall")], next: undefined });
    garden.put([plant(3n, "hall"), plant(4n, "porch"), plant(1n, "porch")]);
    expect(idsOf(garden)).toEqual([2n, 3n]);
  });

  test("leaves a plant to the page that will bring it, in either order", () => {
    for (const [order, near, far] of [
      [undefined, 4n, 6n],
      ["desc", 6n, 4n],
    ] as const) {
      const garden = new Garden({ order });
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
    const garden = new Garden({ tag: "hall" });
    const plants = Array.from({ length: 10 }, (_, index) => plant(BigInt(2 * index + 2), "hall"));
    garden.addPage({ plants, next: 20n });
    const follow = (...events: PlantEvent[]) => garden.follow(events, { first: 3, last: 5 });
    return { garden, follow };
  }

  test("removes what is out of view, and marks what is in view until it comes back", () => {
    const { garden, follow } = makeViewed();
    follow(
      event("deleted", plant(2n, "hall")),
      event("deleted", plant(8n, "hall")),
      event("replaced", plant(10n, "porch")),
      event("replaced", plant(20n, "porch")),
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
      event("deleted", plant(3n, "hall")),
      event("replaced", plant(5n, "porch")),
    );
    expect(garden.waiting).toEqual([plant(7n, "hall")]);
    expect(garden.size).toBe(11);
    expect(garden.admit()).toEqual([7n]);
    expect(idsOf(garden).slice(2, 5)).toEqual([6n, 7n, 8n]);
  });
});
