/** Create and delete, with their rules, on a real storage: ids, gardens, idempotency keys. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GroupCommit, groupCommitDefaults } from "../storage/group-commit.ts";
import { openStorage } from "../storage/open.ts";
import type { Caller } from "./caller.ts";
import type { PlantDraft } from "./plant.ts";
import { createPlants, type Plants } from "./plants.ts";
import type { Outcome, Storage } from "./storage.ts";

const alice: Caller = { credential: "t", user: "alice", garden: "alice", scope: "write" };
const bob: Caller = { credential: "t", user: "bob", garden: "bob", scope: "write" };
const dayMs = 24 * 60 * 60 * 1000;

let folder: string;
let storage: Storage;
let plants: Plants;
let nowMs: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-plants-"));
  storage = await openStorage(join(folder, "plants.db"), { isServing: true });
  nowMs = 1_000_000;
  const writer = new GroupCommit(storage, { ...groupCommitDefaults, onCommit() {} });
  plants = createPlants({ reader: storage, writer, nowMs: () => nowMs });
});

afterEach(async () => {
  await storage.close();
  rmSync(folder, { recursive: true });
});

function fern(id?: bigint, tag = ""): PlantDraft {
  return id === undefined ? { name: "Fern", tag } : { name: "Fern", tag, id };
}

async function idsOf(caller: Caller): Promise<bigint[]> {
  const { first } = await plants.list(caller, {});
  return first.map((plant) => plant.id);
}

describe("create", () => {
  test("assigns ids from 1 on, later plants higher", async () => {
    expect(await plants.create(alice, fern())).toEqual({
      id: 1n,
      name: "Fern",
      tag: "",
      replayed: false,
    });
    expect((await plants.create(alice, fern())).id).toBe(2n);
  });

  test("keeps a chosen id exactly, also beyond what a double holds", async () => {
    const id = 2n ** 53n + 1n;
    expect((await plants.create(alice, fern(id))).id).toBe(id);
    expect(await idsOf(alice)).toEqual([id]);
  });

  test("refuses an id that is taken in the garden, and changes nothing", async () => {
    await plants.create(alice, fern(7n));
    const again = await plants
      .create(alice, { name: "Rose", tag: "", id: 7n })
      .catch((error) => error);
    expect(again).toMatchObject({ code: "conflict", message: expect.stringContaining("7") });
    expect((await plants.list(alice, {})).first).toEqual([{ id: 7n, name: "Fern", tag: "" }]);
  });

  test("lets two gardens use the same id", async () => {
    await plants.create(alice, fern(7n));
    expect((await plants.create(bob, fern(7n))).id).toBe(7n);
  });
});

describe("create with an idempotency key", () => {
  test("acts once and answers the same plant again", async () => {
    const first = await plants.create(alice, fern(), "key");
    const second = await plants.create(alice, fern(), "key");
    expect(first).toMatchObject({ id: 1n, replayed: false });
    expect(second).toEqual({ ...first, replayed: true });
    expect(await idsOf(alice)).toEqual([1n]);
  });

  test("answers again although the plant is gone since", async () => {
    await plants.create(alice, fern(7n), "key");
    await plants.delete(alice, 7n);
    expect(await plants.create(alice, fern(7n), "key")).toMatchObject({ id: 7n, replayed: true });
    expect(await idsOf(alice)).toEqual([]);
  });

  test.each<[string, PlantDraft]>([
    ["name", { name: "Rose", tag: "", id: 7n }],
    ["tag", fern(7n, "x")],
    ["id", fern(8n)],
    ["id, now absent", fern()],
  ])("refuses the key for a request with another %s", async (_case, draft) => {
    await plants.create(alice, fern(7n), "key");
    const other = await plants.create(alice, draft, "key").catch((error) => error);
    expect(other).toMatchObject({ code: "idempotency-mismatch" });
    expect(await idsOf(alice)).toEqual([7n]);
  });

  test("tells a request with the id 0 from one without an id", async () => {
    await plants.create(alice, fern(0n), "key");
    const other = await plants.create(alice, fern(), "key").catch((error) => error);
    expect(other).toMatchObject({ code: "idempotency-mismatch" });
  });

  test("tells requests apart whose fields only look alike when joined", async () => {
    await plants.create(alice, { name: 'a","b', tag: "" }, "key");
    const other = await plants.create(alice, { name: "a", tag: 'b","' }, "key").catch((e) => e);
    expect(other).toMatchObject({ code: "idempotency-mismatch" });
  });

  test("knows nothing of the keys of another garden", async () => {
    await plants.create(alice, fern(), "key");
    expect(await plants.create(bob, fern(9n), "key")).toMatchObject({ id: 9n, replayed: false });
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

describe("delete", () => {
  test("removes the plant, once", async () => {
    await plants.create(alice, fern(7n));
    await plants.delete(alice, 7n);
    expect(await idsOf(alice)).toEqual([]);
    const again = await plants.delete(alice, 7n).catch((error) => error);
    expect(again).toMatchObject({ code: "not-found" });
  });

  test("says the same of a plant that is gone, never was, or is another garden's", async () => {
    await plants.create(alice, fern(1n));
    await plants.delete(alice, 1n);
    await plants.create(bob, fern(3n));
    const messages = await Promise.all(
      [1n, 2n, 3n].map((id) => plants.delete(alice, id).catch((error) => error.message)),
    );
    expect(new Set(messages).size).toBe(1);
    expect(await idsOf(bob)).toEqual([3n]);
  });
});

/** Outcomes that a real storage cannot be brought to, or never has for that write. */
describe("an outcome of the writer", () => {
  function plantsOn(outcome: Outcome): Plants {
    return createPlants({
      reader: storage,
      writer: { write: async () => outcome },
      nowMs: () => 0,
    });
  }

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

  test("that no create can have is a bug, not an expected failure", async () => {
    const created = await plantsOn({ kind: "deleted" })
      .create(alice, fern())
      .catch((error) => error);
    expect(created).toBeInstanceOf(Error);
    expect(created).not.toHaveProperty("code");
  });
});
