/**
 * Lists, searches and tags in pages, on a real storage: limits, what comes next, a garden that
 * changes, and how much is done at a time.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { create, remove } from "../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { overloaded } from "../domain/errors.ts";
import { scanMatches, scanPlants, scanTags } from "../domain/lists.ts";
import type { Plant, PlantId } from "../domain/plant.ts";
import { createMatcher } from "../domain/search.ts";
import type { Order, PlantReader } from "../domain/storage.ts";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { type Listing, type ListRange, Lists } from "./listing.ts";

const folder = makeTemporaryFolder();
let storage: Storage;
let gardens = 0;

beforeAll(async () => {
  storage = await openStorage(join(folder.path, "plants.db"), { isServing: true });
});

afterAll(async () => {
  await storage.close();
  folder[Symbol.dispose]();
});

/** A garden of its own for every test, with the plants 1 to `count`. */
let garden: string;
async function growGarden(
  count: number,
  name = "a",
  change: (id: number) => Partial<Plant> = () => ({}),
): Promise<void> {
  garden = `garden ${++gardens}`;
  await storage.apply(
    range(1, count).map((id) => create({ garden, id: BigInt(id), name, ...change(id) })),
  );
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

type PlantListing = Listing<Plant, PlantId>;

let turns = 0;
const turn = async () => turns++;

function list(range: ListRange<PlantId>, reader: PlantReader = storage): Promise<PlantListing> {
  return new Lists(turn).read(garden, scanPlants(reader, garden, {}), range);
}

function search(words: string, range: ListRange<PlantId>, order: Order = "asc") {
  const scan = scanMatches(scanPlants(storage, garden, { order }), createMatcher(words));
  return new Lists(turn).read(garden, scan, range);
}

function listTags(range: ListRange<string>, reader: PlantReader = storage) {
  return new Lists(turn).read(garden, scanTags(reader, garden, turn), range);
}

async function collectItems<Item>({ first, rest }: Listing<Item, unknown>): Promise<Item[]> {
  const items = [...first];
  for (let page = await rest?.next(); page; page = await rest?.next()) items.push(...page);
  return items;
}

async function collect(listing: PlantListing): Promise<number[]> {
  return (await collectItems(listing)).map(({ id }) => Number(id));
}

describe("a list", () => {
  test("that has begun isn't refused when the storage is busy; it waits", async () => {
    await growGarden(2_500);
    let reads = 0;
    const reader: PlantReader = {
      ...storage,
      list(...query) {
        return ++reads === 2 ? Promise.reject(overloaded) : storage.list(...query);
      },
    };
    expect(await collect(await list({}, reader))).toEqual(range(1, 2_500));
    expect(reads).toBeGreaterThan(2);
  });

  test("that may be long waits until few of its garden's lists are beginning", async () => {
    await growGarden(3);
    const waiting: (() => void)[] = [];
    const reader: PlantReader = {
      ...storage,
      async list(...query) {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return storage.list(...query);
      },
    };
    const lists = new Lists(turn);
    const ask = (limit?: number) => lists.read(garden, scanPlants(reader, garden, {}), { limit });
    const long = Array.from({ length: 20 }, (_, index) => ask(index % 2 ? undefined : 2_000));
    const short = ask(20);
    await Bun.sleep(1);
    expect(waiting).toHaveLength(17);
    for (const read of waiting) read();
    await Bun.sleep(1);
    for (const read of waiting) read();
    for (const each of [...long, short]) expect(await collect(await each)).toEqual([1, 2, 3]);
  });

  test("of 2,000 plants is read in one go, and shows one moment", async () => {
    await growGarden(2);
    const reads: number[] = [];
    const reader: PlantReader = {
      ...storage,
      seek: () => Promise.reject(new Error("This need not seek.")),
      list(garden, after, count, options) {
        reads.push(count);
        return storage.list(garden, after, count, options);
      },
    };
    await list({ limit: 2_000 }, reader);
    expect(reads).toEqual([2_001]);
  });

  const textOf = (plants: readonly Plant[]) =>
    plants.reduce((sum, plant) => sum + plant.name.length + plant.tag.length, 0);

  test.each([{}, { limit: 150 }, { limit: 2_000 }, { limit: 2_001 }])(
    "of plants with long names comes in pages of a bounded size and whole: %p",
    async (query) => {
      await growGarden(160, "🌱".repeat(200));
      const listing = await list(query);
      expect(textOf(listing.first)).toBeLessThanOrEqual(32 * 1024);
      const ids = listing.first.map(({ id }) => Number(id));
      for (let page = await listing.rest?.next(); page; page = await listing.rest?.next()) {
        expect(textOf(page)).toBeLessThanOrEqual(32 * 1024);
        ids.push(...page.map(({ id }) => Number(id)));
      }
      expect(ids).toEqual(range(1, query.limit === 150 ? 150 : 160));
      expect(listing.next).toEqual(query.limit === 150 ? { limit: 150, after: 150n } : undefined);
    },
  );

  test("too large for one go visits no plant twice when plants are deleted before they were read", async () => {
    await growGarden(3_300, "a".repeat(15));
    // After the first page was read and the last plant was found.
    let isChanged = false;
    const reader: PlantReader = {
      ...storage,
      async seek(...sought) {
        const found = await storage.seek(...sought);
        const deletions = range(2_202, 2_400).map((id) => remove(BigInt(id), garden));
        if (!isChanged) await storage.apply(deletions);
        isChanged = true;
        return found;
      },
    };
    const listing = await list({ limit: 2_600 }, reader);
    const visited = await collect(listing);
    const all = [...visited, ...(await collect(await list({ after: listing.next?.after })))];
    expect(all).toEqual([...range(1, 2_201), ...range(2_401, 3_300)]);
  });
});

describe("a search", () => {
  test("looks at 20,000 plants for a page, in turns, and goes on after the last of them", async () => {
    await growGarden(20_500, "a", (id) => (id > 20_000 ? { name: "fern" } : {}));
    turns = 0;
    const first = await search("fern", { limit: 5 });
    expect(first).toEqual({ first: [], next: { limit: 5, after: 20_000n } });
    expect(turns).toBe(19);
    const second = await search("fern", first.next ?? {});
    expect(await collect(second)).toEqual(range(20_001, 20_005));
    expect(second.next).toEqual({ limit: 5, after: 20_005n });
    expect((await search("fern", { limit: 500, after: 20_000n })).next).toBeUndefined();
    expect(await collect(await search("fern", {}))).toEqual(range(20_001, 20_500));
  });

  test.each([
    ["asc", 2_500, range(1, 2_500), 2_500n],
    ["desc", 2_500, range(501, 3_000).toReversed(), 501n],
    ["asc", 3_000, range(1, 3_000), undefined],
    ["asc", 9_999, range(1, 3_000), undefined],
  ] as const)(
    "that finds more than fits into a page comes whole: %s, limit %d",
    async (order, limit, ids, after) => {
      await growGarden(3_000, "x".repeat(40));
      const listing = await search("x", { limit }, order);
      expect(await collect(listing)).toEqual([...ids]);
      expect(listing.next).toEqual(after && { limit, after });
    },
  );

  test("may end after plants that don't match", async () => {
    await growGarden(3_000, "x".repeat(40), (id) => (id % 2 ? {} : { name: "fern" }));
    const listing = await search("x", { limit: 1_400 });
    expect(await collect(listing)).toHaveLength(1_400);
    expect(listing.next).toEqual({ limit: 1_400, after: 2_799n });
  });
});

describe("tags", () => {
  test("are counted exactly, 4,000 plants at a time and in turns, however many have one tag", async () => {
    const tagOf = (id: number) => (id <= 3_999 ? "a" : id <= 13_000 ? "b" : `c${id}`);
    await growGarden(13_010, "a", (id) => ({ tag: tagOf(id) }));
    const reads: number[] = [];
    const reader: PlantReader = {
      ...storage,
      countByTag(garden, from, count) {
        reads.push(count);
        return storage.countByTag(garden, from, count);
      },
    };
    turns = 0;
    const listing = await listTags({}, reader);
    const counts = await collectItems(listing);
    expect(counts.slice(0, 3)).toEqual([
      { tag: "a", plants: 3_999 },
      { tag: "b", plants: 9_001 },
      { tag: "c13001", plants: 1 },
    ]);
    expect(counts).toHaveLength(12);
    expect(new Set(reads)).toEqual(new Set([4_000]));
    expect(turns).toBeGreaterThanOrEqual(2);
  });

  test.each([[undefined], [5_000], [4_999], [1]])(
    "come in pages of a bounded size and whole: limit %p",
    async (limit) => {
      const tagOf = (id: number) => `tag ${String(id).padStart(6, "0")}`;
      await growGarden(5_000, "a", (id) => ({ tag: tagOf(id) }));
      const listing = await listTags({ limit });
      expect(listing.first.length).toBeLessThan(2_000);
      const tags = (await collectItems(listing)).map(({ tag }) => tag);
      expect(tags).toEqual(range(1, limit ?? 5_000).map(tagOf));
      const isCut = limit !== undefined && limit < 5_000;
      expect(listing.next).toEqual(isCut ? { limit, after: tagOf(limit) } : undefined);
    },
  );
});
