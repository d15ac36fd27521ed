/** The plants loaded so far, in cases that a page can't easily be brought into. */
import { describe, expect, test } from "bun:test";
import type { Plant, PlantEvent } from "./api.ts";
import type { SortedQuery } from "./order.ts";
import { PlantList } from "./plant-list.ts";

function plant(id: bigint, tag = ""): Plant {
  return { id, name: `Plant ${id}`, tag };
}

function idsOf(list: PlantList): bigint[] {
  return list.plants.map(({ id }) => id);
}

describe("a list", () => {
  test("keeps plants in the order of their ids, over the whole range, whatever order they come in", () => {
    const ids = [-(2n ** 63n), 2n, 10n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n];
    for (const order of [undefined, "desc"] as const) {
      const list = new PlantList({ order });
      for (const page of [ids.slice(1, 4), ids.slice(2).toReversed(), ids])
        list.addPage({ plants: page.map((id) => plant(id)), next: undefined });
      expect(idsOf(list)).toEqual(order === "desc" ? ids.toReversed() : ids);
    }
  });

  test("sorts by name or tag as people do, with untagged plants last", () => {
    const plants = ["b:2", "A:10", "bed 11:", "bed 2:2"].map((text, index) => {
      const [name = "", tag = ""] = text.split(":");
      return { id: BigInt(index + 1), name, tag };
    });
    const sorted = (query: SortedQuery) => {
      const list = new PlantList(query);
      list.addPage({ plants, next: undefined });
      list.sort();
      return list.plants.map(({ name }) => name);
    };
    const byName = ["A", "b", "bed 2", "bed 11"];
    expect(sorted({})).toEqual(byName);
    expect(sorted({ sort: "name", order: "desc" })).toEqual(byName.toReversed());
    expect(sorted({ sort: "tag" })).toEqual(["b", "bed 2", "A", "bed 11"]);
    expect(sorted({ sort: "tag", order: "desc" })).toEqual(["A", "b", "bed 2", "bed 11"]);
    expect(sorted({ order: "desc" })).toEqual(["bed 2", "bed 11", "A", "b"]);
  });

  test("puts a new plant at its place, and leaves a renamed one where it is", () => {
    const list = new PlantList({});
    const plants = ["Acer", "Fern", "Moss"].map((name, index) => {
      return { id: BigInt(index + 1), name, tag: "" };
    });
    list.addPage({ plants, next: undefined });
    list.sort();
    list.put([
      { id: 2n, name: "Zinnia", tag: "" },
      { id: 9n, name: "Cactus", tag: "" },
    ]);
    expect(list.plants.map(({ name }) => name)).toEqual(["Acer", "Cactus", "Zinnia", "Moss"]);
  });

  test("takes only plants that match, and drops one that no longer does", () => {
    const list = new PlantList({ tag: "hall" });
    list.addPage({ plants: [plant(1n, "hall"), plant(2n, "hall")], next: undefined });
    list.put([plant(3n, "hall"), plant(4n, "porch"), plant(1n, "porch")]);
    expect(idsOf(list)).toEqual([2n, 3n]);
  });

  test("leaves a plant to the page that will bring it, in either order, and to the first one", () => {
    const failed = new PlantList({});
    failed.put([plant(1n)]);
    expect(idsOf(failed)).toEqual([]);
    for (const [order, near, far] of [
      [undefined, 4n, 6n],
      ["desc", 6n, 4n],
    ] as const) {
      const list = new PlantList({ order });
      list.addPage({ plants: [], next: 5n });
      list.put([plant(near), plant(far)]);
      expect(idsOf(list)).toEqual([near]);
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
    const list = new PlantList({ tag: "hall" });
    const plants = Array.from({ length: 10 }, (_, index) => plant(BigInt(2 * index + 2), "hall"));
    list.addPage({ plants, next: 20n });
    const follow = (...events: PlantEvent[]) => list.follow(events, { first: 3, last: 5 });
    return { list, follow };
  }

  test("removes what is out of view, and marks what is in view until it comes back", () => {
    const { list, follow } = makeViewed();
    follow(
      event("deleted", plant(2n, "hall")),
      event("deleted", plant(8n, "hall")),
      event("replaced", plant(10n, "porch")),
      event("replaced", plant(20n, "porch")),
    );
    expect(idsOf(list)).toEqual([4n, 6n, 8n, 10n, 12n, 14n, 16n, 18n]);
    const reasons = list.plants.slice(1, 5).map((each): string => each.goneBecause ?? "");
    expect(reasons).toEqual(["", "deleted", "changed", ""]);
    expect(list.size).toBe(6);
    follow(event("created", plant(8n, "hall")));
    expect(list.size).toBe(7);
    list.follow([], { first: 5, last: 7 });
    expect(idsOf(list)).toEqual([4n, 6n, 8n, 12n, 14n, 16n, 18n]);
    // The next change of one's own removes what is gone at once.
    follow(event("deleted", plant(12n, "hall")));
    list.put([]);
    expect(idsOf(list)).toEqual([4n, 6n, 8n, 14n, 16n, 18n]);
  });

  test("waits as its last event left it, until it is admitted, unless a later page brings it", () => {
    const { list, follow } = makeViewed();
    follow(
      ...[3n, 5n, 7n, 21n].map((id) => event("created", plant(id, "hall"))),
      event("deleted", plant(3n, "hall")),
      event("replaced", plant(5n, "porch")),
    );
    expect(list.waiting).toEqual([plant(7n, "hall")]);
    expect(list.size).toBe(11);
    expect(list.admit()).toEqual([7n]);
    expect(idsOf(list).slice(2, 5)).toEqual([6n, 7n, 8n]);
  });
});
