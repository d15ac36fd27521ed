/**
 * The list and its pages, on a real storage: limits, what comes next, and a garden that changes.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import type { Caller } from "./caller.ts";
import type { Plant } from "./plant.ts";
import { type Listing, type ListQuery, Plants } from "./plants.ts";
import type { PlantReader, Write } from "./storage.ts";

const folder = mkdtempSync(join(tmpdir(), "plantstore-list-"));
let storage: Storage;
let gardens = 0;

beforeAll(async () => {
  storage = await openStorage(join(folder, "plants.db"), { isServing: true });
});

afterAll(async () => {
  await storage.close();
  rmSync(folder, { recursive: true });
});

/** A garden of its own for every test, with the plants 1 to `count`. */
let caller: Caller;
async function growGarden(count: number): Promise<void> {
  caller = { credential: "t", user: "alice", garden: `garden ${++gardens}`, scope: "read" };
  await add(range(1, count));
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

async function add(ids: readonly number[]): Promise<void> {
  const { garden } = caller;
  const writes = ids.map((id): Write => {
    return { kind: "create", garden, id: BigInt(id), name: "a", tag: "", idempotency: undefined };
  });
  await storage.apply(writes);
}

async function remove(ids: readonly number[]): Promise<void> {
  const { garden } = caller;
  await storage.apply(ids.map((id): Write => ({ kind: "delete", garden, id: BigInt(id) })));
}

const refuse = () => Promise.reject(new Error("A list writes nothing."));
const writer = { write: refuse, writeAll: refuse };

function list(query: ListQuery, reader: PlantReader = storage): Promise<Listing> {
  return new Plants(reader, writer).list(caller, query);
}

async function collect(listing: Listing): Promise<number[]> {
  const plants = [...listing.first];
  for (;;) {
    const page = await listing.rest?.next();
    if (page === undefined) break;
    plants.push(...page);
  }
  return plants.map((plant) => Number(plant.id));
}

/** Calls `change` once, after the first page was read and the last plant was found. */
function changeAfterSeek(change: () => Promise<void>): PlantReader {
  let isChanged = false;
  return {
    list: storage.list,
    countPlants: storage.countPlants,
    async seek(garden, after, count) {
      const found = await storage.seek(garden, after, count);
      if (!isChanged) await change();
      isChanged = true;
      return found;
    },
  };
}

describe("a list with a limit", () => {
  test("steps over ten thousand plants in bounded seeks", async () => {
    await growGarden(12_002);
    const counts: number[] = [];
    const reader: PlantReader = {
      list: storage.list,
      countPlants: storage.countPlants,
      seek(garden, after, count) {
        counts.push(count);
        return storage.seek(garden, after, count);
      },
    };
    const listing = await list({ limit: 12_002 }, reader);
    expect(counts).toEqual([4_000, 4_000, 2_001]);
    expect(await collect(listing)).toEqual(range(1, 12_002));
    expect(listing.next).toBeUndefined();
  });

  test("of 2,000 is read in one go, and shows one moment", async () => {
    await growGarden(2);
    const reads: number[] = [];
    const reader: PlantReader = {
      countPlants: storage.countPlants,
      seek: () => Promise.reject(new Error("This need not seek.")),
      list(garden, after, count, options) {
        reads.push(count);
        return storage.list(garden, after, count, options);
      },
    };
    await list({ limit: 2_000 }, reader);
    expect(reads).toEqual([2_001]);
  });

  test("too large for one go starts after `after`, too", async () => {
    await growGarden(4_100);
    const listing = await list({ limit: 2_001, after: 2_050n });
    expect(await collect(listing)).toEqual(range(2_051, 4_051));
    expect(listing.next).toEqual({ limit: 2_001, after: 4_051n });
  });
});

describe("a list of plants with long names", () => {
  const name = "🌱".repeat(200);
  const textOf = (plants: readonly Plant[]) =>
    plants.reduce((sum, plant) => sum + plant.name.length + plant.tag.length, 0);

  async function growLong(count: number): Promise<void> {
    await growGarden(0);
    const { garden } = caller;
    const writes = range(1, count).map((id): Write => {
      return { kind: "create", garden, id: BigInt(id), name, tag: "", idempotency: undefined };
    });
    await storage.apply(writes);
  }

  test.each([{}, { limit: 150 }, { limit: 2_000 }, { limit: 2_001 }])(
    "comes in pages of a bounded size and whole: %p",
    async (query) => {
      await growLong(160);
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

  test("comes in smaller pages while many others are open", async () => {
    await growLong(160);
    const plants = new Plants(storage, writer);
    const open = await Promise.all(range(1, 1_000).map(() => plants.list(caller, {})));
    const { first } = await plants.list(caller, {});
    expect(textOf(first)).toBeLessThanOrEqual(3 * 1024);
    for (const { rest } of open) rest?.close();
    expect(textOf((await plants.list(caller, {})).first)).toBeGreaterThan(31 * 1024);
  });
});

describe("a list with a limit too large for one go, while the garden changes", () => {
  test("visits no plant twice when plants are deleted before they were read", async () => {
    await growGarden(3300);
    const reader = changeAfterSeek(() => remove(range(2_002, 2_400)));
    const listing = await list({ limit: 2600 }, reader);
    const visited = await collect(listing);
    const following = await collect(await list({ after: listing.next?.after }));
    const all = [...visited, ...following];
    expect(all.length - new Set(all).size).toBe(0);
    expect(new Set(all)).toEqual(new Set([...range(1, 2_001), ...range(2_401, 3_300)]));
  });
});
