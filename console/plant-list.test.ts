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

function namesOf(list: PlantList): string[] {
  return list.plants.map(({ name }) => name);
}

describe("a list by id", () => {
  const lowest = -(2n ** 63n);
  const highest = 2n ** 63n - 1n;
  /** Two of them are the same as floating-point numbers. */
  const ids = [lowest, 2n, 10n, 2n ** 53n, 2n ** 53n + 1n, highest];
  /** They come in another order than that of their ids, and overlap. */
  const pages = [
    [2n, 10n, 2n ** 53n],
    [highest, 2n ** 53n + 1n, 2n ** 53n, 10n],
    [lowest, 2n, 10n, 2n ** 53n, 2n ** 53n + 1n, highest],
  ].map((pageIds) => ({ plants: pageIds.map((id) => plant(id)), next: undefined }));

  test("has every plant once and in order, however its pages come", () => {
    const list = new PlantList({});

    for (const page of pages) list.addPage(page);

    expect(idsOf(list)).toEqual(ids);
  });

  test("can have the highest id first", () => {
    const list = new PlantList({ order: "desc" });

    for (const page of pages) list.addPage(page);

    expect(idsOf(list)).toEqual(ids.toReversed());
  });
});

describe("a sorted list", () => {
  function sortedNames(query: SortedQuery): string[] {
    const list = new PlantList(query);
    const plants = [
      { id: 1n, name: "b", tag: "2" },
      { id: 2n, name: "A", tag: "10" },
      { id: 3n, name: "bed 11", tag: "" },
      { id: 4n, name: "bed 2", tag: "2" },
    ];
    list.addPage({ plants, next: undefined });
    list.sort();
    return namesOf(list);
  }

  test("is by name as people sort, unless another order is requested", () => {
    expect(sortedNames({})).toEqual(["A", "b", "bed 2", "bed 11"]);
  });

  test("can be by name from the end", () => {
    expect(sortedNames({ sort: "name", order: "desc" })).toEqual(["bed 11", "bed 2", "b", "A"]);
  });

  test("is by tag and then by name, with untagged plants last in both directions", () => {
    expect(sortedNames({ sort: "tag" })).toEqual(["b", "bed 2", "A", "bed 11"]);
    expect(sortedNames({ sort: "tag", order: "desc" })).toEqual(["A", "b", "bed 2", "bed 11"]);
  });

  test("is by id from the end if only the direction is requested", () => {
    expect(sortedNames({ order: "desc" })).toEqual(["bed 2", "bed 11", "A", "b"]);
  });

  test("puts a new plant at its place, and leaves a renamed one where it is", () => {
    const list = new PlantList({});
    const plants = [
      { id: 1n, name: "Acer", tag: "" },
      { id: 2n, name: "Fern", tag: "" },
      { id: 3n, name: "Moss", tag: "" },
    ];
    list.addPage({ plants, next: undefined });
    list.sort();

    list.put([
      { id: 2n, name: "Zinnia", tag: "" },
      { id: 9n, name: "Cactus", tag: "" },
    ]);

    expect(namesOf(list)).toEqual(["Acer", "Cactus", "Zinnia", "Moss"]);
  });
});

describe("a plant that was written here", () => {
  test("is in the list of its tag only", () => {
    const list = new PlantList({ tag: "hall" });
    list.addPage({ plants: [plant(1n, "hall"), plant(2n, "hall")], next: undefined });

    list.put([plant(3n, "hall"), plant(4n, "porch"), plant(1n, "porch")]);

    expect(idsOf(list)).toEqual([2n, 3n]);
  });

  test("isn't in a list that has no page yet: the first page will bring it", () => {
    const list = new PlantList({});

    list.put([plant(1n)]);

    expect(idsOf(list)).toEqual([]);
  });

  test("isn't in the list if a later page will bring it", () => {
    const list = new PlantList({});
    list.addPage({ plants: [], next: 5n });

    list.put([plant(4n), plant(6n)]);

    expect(idsOf(list)).toEqual([4n]);
  });

  test("isn't in a descending list if a later page will bring it", () => {
    const list = new PlantList({ order: "desc" });
    list.addPage({ plants: [], next: 5n });

    list.put([plant(6n), plant(4n)]);

    expect(idsOf(list)).toEqual([6n]);
  });
});

describe("what others do", () => {
  let seq = 0;
  function event(type: PlantEvent["type"], of: Plant): PlantEvent {
    return { seq: ++seq, type, at: "", user: "bob", plant: of };
  }

  /** The plants 2, 4 and so on to 20, in a list that goes on. 8, 10 and 12 are in view. */
  function makeViewedList() {
    const list = new PlantList({ tag: "hall" });
    const ids = [2n, 4n, 6n, 8n, 10n, 12n, 14n, 16n, 18n, 20n];
    list.addPage({ plants: ids.map((id) => plant(id, "hall")), next: 20n });
    const follow = (...events: PlantEvent[]) => list.follow(events, { first: 3, last: 5 });
    return { list, follow };
  }

  test("removes plants that are out of view, and marks those in view with the reason", () => {
    const { list, follow } = makeViewedList();

    follow(
      event("plant.deleted", plant(2n, "hall")),
      event("plant.deleted", plant(8n, "hall")),
      event("plant.replaced", plant(10n, "porch")),
      event("plant.replaced", plant(20n, "porch")),
    );

    expect(list.plants.map(({ id, goneBecause }) => ({ id, goneBecause }))).toEqual([
      { id: 4n, goneBecause: undefined },
      { id: 6n, goneBecause: undefined },
      { id: 8n, goneBecause: "deleted" },
      { id: 10n, goneBecause: "changed" },
      { id: 12n, goneBecause: undefined },
      { id: 14n, goneBecause: undefined },
      { id: 16n, goneBecause: undefined },
      { id: 18n, goneBecause: undefined },
    ]);
    // Without the marked ones.
    expect(list.size).toBe(6);
  });

  test("takes the mark away from a plant that comes back", () => {
    const { list, follow } = makeViewedList();
    follow(event("plant.deleted", plant(8n, "hall")));
    expect(list.size).toBe(9);

    follow(event("plant.created", plant(8n, "hall")));

    expect(list.size).toBe(10);
    expect(list.find(8n)?.goneBecause).toBeUndefined();
  });

  test("removes a marked plant once it's out of view", () => {
    const { list, follow } = makeViewedList();
    follow(event("plant.replaced", plant(10n, "porch")));

    list.follow([], { first: 6, last: 8 });

    expect(idsOf(list)).toEqual([2n, 4n, 6n, 8n, 12n, 14n, 16n, 18n, 20n]);
  });

  test("removes marked plants with the next change that is made here", () => {
    const { list, follow } = makeViewedList();
    follow(event("plant.deleted", plant(12n, "hall")));

    list.put([]);

    expect(idsOf(list)).toEqual([2n, 4n, 6n, 8n, 10n, 14n, 16n, 18n, 20n]);
  });

  test("lets new plants wait until they are admitted", () => {
    const { list, follow } = makeViewedList();

    follow(event("plant.created", plant(7n, "hall")));
    expect(list.waiting).toEqual([plant(7n, "hall")]);
    expect(list.size).toBe(11);

    expect(list.admit()).toEqual([7n]);
    expect(idsOf(list).slice(2, 5)).toEqual([6n, 7n, 8n]);
  });

  test("drops waiting plants that are deleted or leave the tag", () => {
    const { list, follow } = makeViewedList();
    follow(event("plant.created", plant(3n, "hall")), event("plant.created", plant(5n, "hall")));
    expect(list.size).toBe(12);

    follow(event("plant.deleted", plant(3n, "hall")), event("plant.replaced", plant(5n, "porch")));

    expect(list.waiting).toEqual([]);
    expect(list.size).toBe(10);
  });

  test("adds a plant as the last event of it left it", () => {
    const { list, follow } = makeViewedList();

    follow(
      event("plant.created", plant(3n, "hall")),
      event("plant.created", plant(5n, "hall")),
      event("plant.created", plant(7n, "hall")),
      event("plant.deleted", plant(3n, "hall")),
      event("plant.replaced", plant(5n, "porch")),
    );

    expect(list.waiting).toEqual([plant(7n, "hall")]);
    expect(list.size).toBe(11);
  });

  test("leaves new plants to the page that will bring them", () => {
    const { list, follow } = makeViewedList();

    follow(event("plant.created", plant(21n, "hall")));

    expect(list.waiting).toEqual([]);
    expect(list.size).toBe(10);
  });
});
