/**
 * The list and its pages, on a real storage: limits, what comes next, and a garden that changes.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { create, remove } from "../../test/storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { scanPlants } from "../domain/lists.ts";
import type { Plant, PlantId } from "../domain/plant.ts";
import type { PlantReader } from "../domain/storage.ts";
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
async function growGarden(count: number, name = "a"): Promise<void> {
  garden = `garden ${++gardens}`;
  await storage.apply(range(1, count).map((id) => create({ garden, id: BigInt(id), name })));
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

type PlantListing = Listing<Plant, PlantId>;

function list(range: ListRange<PlantId>, reader: PlantReader = storage): Promise<PlantListing> {
  return new Lists(async () => {}).read(garden, scanPlants(reader, garden, {}), range);
}

async function collect(listing: PlantListing): Promise<number[]> {
  const plants = [...listing.first];
  for (;;) {
    const page = await listing.rest?.next();
    if (page === undefined) break;
    plants.push(...page);
  }
  return plants.map((plant) => Number(plant.id));
}

describe("a list", () => {
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
