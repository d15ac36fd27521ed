/** Idempotency keys over time, and outcomes that clients rarely see. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GroupCommit, groupCommitDefaults } from "../storage/group-commit.ts";
import { openStorage } from "../storage/open.ts";
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import type { PlantDraft } from "./plant.ts";
import { createPlants, type Plants } from "./plants.ts";
import type { Outcome, Storage, Write } from "./storage.ts";

const alice: Caller = { credential: "t", user: "alice", garden: "alice", scope: "write" };
const dayMs = 24 * 60 * 60 * 1000;

let folder: string;
let storage: Storage;
let plants: Plants;
let nowMs: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-plants-"));
  storage = await openStorage(join(folder, "plants.db"), { isServing: true });
  nowMs = 1_000_000;
  const writer = new GroupCommit(storage, groupCommitDefaults);
  plants = createPlants({ reader: storage, writer, nowMs: () => nowMs });
});

afterEach(async () => {
  await storage.close();
  rmSync(folder, { recursive: true });
});

function fern(id?: bigint, tag = ""): PlantDraft {
  return id === undefined ? { name: "Fern", tag } : { name: "Fern", tag, id };
}

describe("create with an idempotency key", () => {
  test("distinguishes the id 0 from no id", async () => {
    await plants.create(alice, fern(0n), "key");
    const other = await plants.create(alice, fern(), "key").catch((error) => error);
    expect(other).toMatchObject({ code: "idempotency-mismatch" });
  });

  test("distinguishes requests whose fields look alike when joined", async () => {
    await plants.create(alice, { name: 'a","b', tag: "" }, "key");
    const other = await plants.create(alice, { name: "a", tag: 'b","' }, "key").catch((e) => e);
    expect(other).toMatchObject({ code: "idempotency-mismatch" });
  });

  test("remembers the key until 24 hours have passed, and not at that moment", async () => {
    await plants.create(alice, fern(), "key");
    nowMs += dayMs - 1;
    expect(await plants.create(alice, fern(), "key")).toMatchObject({ id: 1n, replayed: true });
    nowMs += 1;
    expect(await plants.create(alice, fern(), "key")).toMatchObject({ id: 2n, replayed: false });
  });

  test("does not lengthen the key's life when it is used again", async () => {
    await plants.create(alice, fern(), "key");
    nowMs += dayMs - 1;
    await plants.create(alice, fern(), "key");
    nowMs += 1;
    expect(await plants.create(alice, fern(9n), "key")).toMatchObject({ id: 9n, replayed: false });
  });
});

describe("many plants", () => {
  const draft = (name: string, id?: bigint) => ({ id, name, tag: "" });

  test("are created in their order, whatever becomes of the others", async () => {
    const error = new PlantStoreError("invalid-request", "Not a plant.");
    const drafts = [draft("a"), draft("b", 7n), error, draft("c", 7n), draft("d")];
    expect(await plants.createMany(alice, drafts)).toMatchObject([
      { id: 1n },
      { id: 7n },
      error,
      { code: "conflict" },
      { id: 8n },
    ]);
  });

  test("are created once, however often they are sent with their key", async () => {
    const drafts = Array.from({ length: 300 }, (_, index) => draft(`plant ${index}`));
    const ids = (results: readonly object[]) =>
      results.map((result) => "id" in result && result.id);
    const first = await plants.createMany(alice, drafts, "key");
    const second = await plants.createMany(alice, drafts, "key");
    expect(ids(second)).toEqual(ids(first));
    expect(second.every((result) => "replayed" in result && result.replayed)).toBe(true);
    const changed = [...drafts.slice(0, 299), draft("another")];
    expect((await plants.createMany(alice, changed, "key")).at(-1)).toMatchObject({
      code: "idempotency-mismatch",
    });
  });

  test("need not exist", async () => {
    expect(await plants.createMany(alice, [])).toEqual([]);
  });
});

/** Outcomes that are hard to reach with a real storage. */
describe("an outcome of the writer", () => {
  function plantsOn(outcome: Outcome): Plants {
    return createPlants({
      reader: storage,
      writer: { write: async () => outcome, writeAll: async () => [outcome] },
      nowMs: () => 0,
    });
  }

  test("that the storage is full leaves open how many of many plants are stored", async () => {
    let calls = 0;
    const full = new PlantStoreError("storage-full", "Full. Nothing was changed.");
    const writeAll = async (writes: readonly Write[]): Promise<Outcome[]> => {
      if (calls++ > 0) throw full;
      return writes.map((_, index) => ({ kind: "created", id: BigInt(index), replayed: false }));
    };
    const write = () => Promise.reject(full);
    const filling = createPlants({ reader: storage, writer: { write, writeAll }, nowMs: () => 0 });
    const drafts = Array.from({ length: 100 }, () => fern());
    const refusal = await filling.createMany(alice, drafts).catch((error) => error);
    expect(refusal).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/a part of the plants may be stored.*same Idempotency-Key/),
    });
  });

  test("that no id is left to assign is a conflict", async () => {
    const created = await plantsOn({ kind: "exhausted" })
      .create(alice, fern())
      .catch((error) => error);
    expect(created).toMatchObject({ code: "conflict", message: expect.stringContaining("No id") });
  });

  test("that the garden holds too many keys says what to do", async () => {
    const created = await plantsOn({ kind: "full", limit: "keys", max: 10_000 })
      .create(alice, fern(), "key")
      .catch((error) => error);
    expect(created).toMatchObject({
      code: "storage-full",
      limit: "keys",
      message: expect.stringMatching(/Retry without .* or wait.*24 hours/),
    });
  });
});
