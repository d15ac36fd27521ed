/** Copies between two files: where they go on, how they stop, and what a comparison finds. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import type { Storage } from "../domain/storage.ts";
import type { MovedRecords, TransferStorage } from "../domain/transfer.ts";
import { copyAll, isEmpty, type Tally } from "./copy.ts";
import { openStorage } from "./open.ts";
import { type Difference, verifyAll } from "./verification.ts";

const plantsInAll = 5_000;
const neverStopped = new AbortController().signal;

let folder: ReturnType<typeof makeTemporaryFolder>;
let storages: Storage[];
let source: TransferStorage;
let target: TransferStorage;

beforeEach(async () => {
  folder = makeTemporaryFolder();
  const paths = ["source.db", "target.db"].map((name) => join(folder.path, name));
  storages = await Promise.all(paths.map((path) => openStorage(path, { isServing: false })));
  [source, target] = storages.map((storage) => storage.transfer(1_000)) as [
    TransferStorage,
    TransferStorage,
  ];
  const plants = Array.from({ length: plantsInAll }, (_, index) => plant(BigInt(index)));
  await source.add("plants", plants);
  await source.add("counters", [{ garden: "g0", lastId: 4_998n }]);
  await source.add("keys", [key]);
  await source.add("tokens", [token]);
});

afterEach(async () => {
  for (const storage of storages) await storage.close();
  folder[Symbol.dispose]();
});

const key = { garden: "g0", key: "k", request: "r", plantId: 7n, expiresAtMs: 2_000 };
const token: MovedRecords["tokens"] = {
  ...{ id: "t", hash: "h", user: "alice", garden: "g0", scope: "read", note: "" },
  ...{ createdAtMs: 1, expiresAtMs: 2, revokedAtMs: undefined, lastUsedAtMs: 3, position: 1n },
};

function plant(id: bigint): MovedRecords["plants"] {
  return { garden: `g${id % 3n}`, id, name: `Fern ${id}`, tag: "hall" };
}

async function copy(signal = neverStopped): Promise<Tally> {
  const tally = { plants: 0, plantsInAll: 0 };
  await copyAll(source, target, tally, signal);
  return tally;
}

async function compare(plants = plantsInAll): Promise<{ found: Difference[]; equal: boolean[] }> {
  const found: Difference[] = [];
  const tally = { plants: 0, plantsInAll: 0 };
  const comparisons = await verifyAll(source, target, tally, neverStopped, (difference) => {
    found.push(difference);
  });
  expect(tally).toEqual({ plants, plantsInAll: plants });
  return { found, equal: comparisons.map((each) => each.source.checksum === each.target.checksum) };
}

describe("a copy", () => {
  test("brings everything, and then both are equal", async () => {
    expect(await isEmpty(target)).toBe(true);
    expect(await copy()).toEqual({ plants: plantsInAll, plantsInAll });
    expect(await isEmpty(target)).toBe(false);
    expect(await compare()).toEqual({ found: [], equal: [true, true, true, true] });
  });

  test("stops between two batches when it is told to, and goes on from there", async () => {
    const stopping = new AbortController();
    const { add } = target;
    target.add = async (kind, records) => {
      await add(kind, records);
      if (kind === "plants") stopping.abort();
    };
    const reason = await copy(stopping.signal).catch((error) => error);
    expect(reason).toBe(stopping.signal.reason);
    const done = await target.count("plants");
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(plantsInAll);
    target.add = add;
    const rest = plantsInAll - done;
    expect(await copy()).toEqual({ plants: rest, plantsInAll: rest });
    expect((await compare()).found).toEqual([]);
  });

  test("looks at everything again when the target lacks something before its last plant", async () => {
    const all = await source.read("plants", undefined, plantsInAll);
    await target.add("plants", [...all.slice(1, 10), all[4_000] as MovedRecords["plants"]]);
    expect(await copy()).toEqual({ plants: plantsInAll, plantsInAll });
    expect((await compare()).found).toEqual([]);
  });
});

describe("a comparison tells", () => {
  /** Stores records in the target before the copy comes with others under the same keys. */
  async function differencesAfter(prepare: () => Promise<unknown>): Promise<unknown[]> {
    await prepare();
    await copy();
    const { found } = await compare();
    return found.map(({ kind, source, target }) => [
      kind,
      (source ?? target)?.group,
      source?.records,
      target?.records,
    ]);
  }

  test.each<[string, Partial<MovedRecords["plants"]>]>([
    ["name", { name: "Other" }],
    ["tag", { tag: "Hall" }],
  ])("a plant with another %s", async (_, fields) => {
    const differences = await differencesAfter(() =>
      target.add("plants", [{ ...plant(3n), ...fields }]),
    );
    expect(differences).toEqual([["plants", "g0", 1_667, 1_667]]);
  });

  test("plants that are too many, in a garden that both know and in others", async () => {
    const more = ["g1", "a", "z", "\u{1f33f}"].map((garden) => ({ ...plant(9_999n), garden }));
    const differences = await differencesAfter(() => target.add("plants", more));
    expect(differences).toEqual([
      ["plants", "a", undefined, 1],
      ["plants", "g1", 1_667, 1_668],
      ["plants", "z", undefined, 1],
      ["plants", "\u{1f33f}", undefined, 1],
    ]);
  });

  test("plants that are missing", async () => {
    const { add } = target;
    target.add = (kind, records) => add(kind, kind === "plants" ? records.slice(1) : records);
    expect(await differencesAfter(copy)).toEqual([
      ["plants", "g0", 1_667, 1_666],
      ["plants", "g1", 1_667, 1_666],
      ["plants", "g2", 1_666, 1_665],
    ]);
  });

  test("no other garden than the one that is missing, however their names are ordered", async () => {
    const [missing, there] = ["\u{fffd}", "\u{10000}"].map((garden) => ({ ...plant(1n), garden }));
    await source.add("plants", [missing, there] as MovedRecords["plants"][]);
    await target.add("plants", [there] as MovedRecords["plants"][]);
    const { found } = await compare(plantsInAll + 2);
    const gardens = found
      .filter(({ kind }) => kind === "plants")
      .map(({ source }) => source?.group);
    expect(gardens).toEqual(["g0", "g1", "g2", "\u{fffd}"]);
  });

  test("another counter", async () => {
    const differences = await differencesAfter(() =>
      target.add("counters", [{ garden: "g0", lastId: 4_997n }]),
    );
    expect(differences).toEqual([["counters", "g0", 1, 1]]);
  });

  test.each<[string, Partial<typeof key>]>([
    ["request", { request: "other" }],
    ["plant", { plantId: 8n }],
    ["expiry", { expiresAtMs: 2_001 }],
  ])("a key with another %s", async (_, fields) => {
    const differences = await differencesAfter(() => target.add("keys", [{ ...key, ...fields }]));
    expect(differences).toEqual([["keys", "g0", 1, 1]]);
  });

  test.each<[string, Partial<typeof token>]>([
    ["hash", { hash: "other" }],
    ["user", { user: "bob" }],
    ["garden", { garden: "g1" }],
    ["scope", { scope: "write" }],
    ["note", { note: "mine" }],
    ["creation", { createdAtMs: 2 }],
    ["expiry", { expiresAtMs: undefined }],
    ["revocation", { revokedAtMs: 2 }],
    ["last use", { lastUsedAtMs: 4 }],
  ])("a token with another %s", async (_, fields) => {
    const differences = await differencesAfter(() =>
      target.add("tokens", [{ ...token, ...fields }]),
    );
    expect(differences).toEqual([["tokens", "t", 1, 1]]);
  });

  test("a token that stands in the way of another", async () => {
    const differences = await differencesAfter(() =>
      target.add("tokens", [{ ...token, id: "of the same hash" }]),
    );
    expect(differences).toEqual([
      ["tokens", "of the same hash", undefined, 1],
      ["tokens", "t", 1, undefined],
    ]);
  });
});
