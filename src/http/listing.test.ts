/**
 * Lists, searches and tags on a real storage: what is read at a time, what waits and what is
 * refused, and how much memory a response takes.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { create } from "../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { overloaded } from "../domain/errors.ts";
import { type Scan, scanMatches, scanPlants, scanTags } from "../domain/lists.ts";
import { type Plant, plantIdMax } from "../domain/plant.ts";
import type { PlantReader } from "../domain/ports.ts";
import { createMatcher } from "../domain/search.ts";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { type Listing, Lists } from "./listing.ts";
import { ReservedBytes } from "./reserved-bytes.ts";

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

let turns = 0;
const turn = async () => turns++;

function read<Item, Position>(scan: Scan<Item, Position>, limit?: number, lists = makeLists()) {
  return lists.read(garden, scan, limit, toJson);
}

function makeLists(reservedBytesMax?: number): Lists {
  return new Lists(turn, new ReservedBytes(reservedBytesMax));
}

const toJson = (item: unknown) =>
  Object.fromEntries(
    Object.entries(item as object).map(([key, value]) => [key, key === "id" ? `${value}` : value]),
  );

function scan(after?: bigint, reader: PlantReader = storage) {
  return scanPlants(reader, garden, { after });
}

function find(words: string, after?: bigint, reader?: PlantReader) {
  return scanMatches(scan(after, reader), createMatcher(words));
}

/** The chunks of a response, in bytes; one if it is sent whole. */
async function readChunks({ body }: Listing<unknown>): Promise<string[]> {
  if (typeof body === "string") return [body];
  const chunks: string[] = [];
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
    chunks.push(typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk));
  }
  body.close();
  return chunks;
}

async function collect<Item>(listing: Listing<unknown>): Promise<Item[]> {
  return JSON.parse((await readChunks(listing)).join(""));
}

async function idsOf(listing: Listing<unknown>): Promise<number[]> {
  return (await collect<{ id: string }>(listing)).map(({ id }) => Number(id));
}

/** Refuses these reads, counted from 1. */
function refusing(...refused: readonly number[]): PlantReader {
  let reads = 0;
  return {
    ...storage,
    list: (...query) =>
      refused.includes(++reads) ? Promise.reject(overloaded) : storage.list(...query),
  };
}

describe("a page", () => {
  test("of up to 1,000 is read in one go", async () => {
    await growGarden(3);
    const reads: unknown[] = [];
    const list: PlantReader["list"] = (garden, after, count, options) => {
      reads.push([count, options?.charactersMax]);
      return storage.list(garden, after, count, options);
    };
    for (const limit of [0, 20, 1_000]) await read(scan(undefined, { ...storage, list }), limit);
    expect(reads).toEqual([1, 21, 1_001].map((count) => [count, undefined]));
  });

  test("that isn't short takes reserved bytes until it is sent or given up", async () => {
    await growGarden(200, "🌱".repeat(200));
    const lists = makeLists(400_000);
    const first = await read(scan(), 200, lists);
    const refusal = await read(scan(), 200, lists).catch((error) => error);
    expect(refusal === overloaded).toBe(true);
    expect(await readChunks(first)).toHaveLength(1);
    const second = await read(scan(), 200, lists);
    if (typeof second.body === "string") throw new Error("It is too long to be sent whole.");
    second.body.close();
    expect(await idsOf(await read(scan(), 200, lists))).toEqual(range(1, 200));
    expect(typeof (await read(scan(), 20, lists)).body).toBe("string");
  });
});

describe("a stream", () => {
  test("comes in chunks of a bounded size", async () => {
    await growGarden(1_600, "🌱".repeat(100));
    const chunks = await readChunks(await read(scan()));
    for (const chunk of chunks) expect(chunk.length).toBeLessThan(48 * 1024);
    expect(JSON.parse(chunks.join(""))).toHaveLength(1_600);
  });

  test("has smaller chunks beside many others", async () => {
    await growGarden(100, "🌱".repeat(200));
    const lists = makeLists();
    const open = await Promise.all(range(1, 600).map(() => read(scan(), undefined, lists)));
    const chunks = await readChunks(await read(scan(), undefined, lists));
    for (const chunk of chunks) expect(chunk.length).toBeLessThan(8 * 1024);
    expect(JSON.parse(chunks.join(""))).toHaveLength(100);
    for (const { body } of open) if (typeof body !== "string") body.close();
    expect(await readChunks(await read(scan(), undefined, lists))).toHaveLength(2);
  });

  test("that has begun isn't refused when the storage is busy; it waits", async () => {
    await growGarden(2_500);
    expect(await idsOf(await read(scan(undefined, refusing(2, 3))))).toEqual(range(1, 2_500));
    const refusal = await read(scan(undefined, refusing(1))).catch((error) => error);
    expect(refusal).toBe(overloaded);
  });

  test.each([
    ["the last", (id: number) => id <= 1_000],
    ["the first", (id: number) => id > 1_000],
    ["one in the middle", (id: number) => id <= 1_000 || id > 2_000],
    ["all", () => false],
  ])("of a search is well-formed when a slice is empty: %s", async (_case, isFern) => {
    await growGarden(2_500, "a", (id) => (isFern(id) ? { name: "fern" } : {}));
    expect(await idsOf(await read(find("fern")))).toEqual(range(1, 2_500).filter(isFern));
  });
});

describe("a search", () => {
  test("takes turns for a page, and before it begins to send one without a limit", async () => {
    await growGarden(20_500, "a", (id) => (id % 5_000 === 0 ? { name: "fern" } : {}));
    for (const limit of [5, undefined]) {
      turns = 0;
      await read(find("fern"), limit);
      expect(turns).toBe(19);
    }
  });

  test("that has begun isn't refused when the storage is busy; it waits", async () => {
    await growGarden(2_500);
    for (const limit of [5, undefined]) {
      expect(await idsOf(await read(find("fern", undefined, refusing(1, 3)), limit))).toEqual([]);
    }
  });

  test("waits for one of its garden's places, and a list doesn't", async () => {
    await growGarden(3);
    const waiting: (() => void)[] = [];
    const reader: PlantReader = {
      ...storage,
      async list(...query) {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return storage.list(...query);
      },
    };
    const lists = makeLists();
    const limits = [1, 20, 1_000, 1_001, undefined];
    const ofLimits = (count: number, ask: (limit?: number) => Promise<Listing<unknown>>) =>
      range(1, count).map((index) => ask(limits[index % limits.length]));
    const searches = ofLimits(20, (limit) => read(find("a", undefined, reader), limit, lists));
    expect(waiting).toHaveLength(16);
    const plain = ofLimits(50, (limit) => read(scan(undefined, reader), limit, lists));
    expect(waiting).toHaveLength(66);
    for (const go of waiting.splice(0)) go();
    await Promise.all([...searches.slice(0, 16), ...plain]);
    expect(waiting).toHaveLength(4);
    for (const go of waiting) go();
    await Promise.all(searches);
  });
});

describe("tags", () => {
  const count = (after?: string, reader: PlantReader = storage) => scanTags(reader, garden, after);

  test("are counted exactly, 4,000 plants at a time, however many have one tag", async () => {
    const tagOf = (id: number) => (id <= 3_999 ? "a" : id <= 13_000 ? "b" : `c${id}`);
    await growGarden(13_010, "a", (id) => ({ tag: tagOf(id) }));
    const reads = new Set<number>();
    const countByTag: PlantReader["countByTag"] = (garden, from, count) => {
      reads.add(count);
      return storage.countByTag(garden, from, count);
    };
    for (const limit of [undefined, 1_000]) {
      const counts = await collect(await read(count(undefined, { ...storage, countByTag }), limit));
      const first = { a: 3_999, b: 9_001, c13001: 1 };
      const expected = Object.entries(first).map(([tag, plants]) => ({ tag, plants }));
      expect([counts.slice(0, 3), counts.length]).toEqual([expected, 12]);
    }
    expect(reads).toEqual(new Set([4_000]));
  });

  test.each([
    ["and the last id that there is", [plantIdMax]],
    ["and nothing after it", []],
  ])("of exactly two steps are counted, %s", async (_case, others) => {
    await growGarden(8_000 - others.length, "a", () => ({ tag: "b" }));
    const rest = others.map((id) => create({ garden, id, tag: "b" }));
    await storage.apply([...rest, create({ garden, tag: "c" })]);
    const expected = [
      { tag: "b", plants: 8_000 },
      { tag: "c", plants: 1 },
    ];
    expect(await collect<unknown>(await read(count()))).toEqual(expected);
    expect(await collect<unknown>(await read(count(), 2))).toEqual(expected);
  });
});
