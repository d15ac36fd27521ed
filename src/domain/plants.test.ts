/** Failures in the middle of a bulk, and how long a key is remembered. */
import { describe, expect, test } from "bun:test";
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import { Plants, slicePlantsMax } from "./plants.ts";
import type { Outcome, PlantReader, Write } from "./ports.ts";

const alice: Caller = { credential: "t", user: "alice", garden: "alice", scope: "write" };
const fern = { name: "Fern", tag: "" };
const ids = Array.from({ length: slicePlantsMax + 1 }, (_, index) => BigInt(index));
const drafts = ids.map(() => fern);

type Send = (plants: Plants) => Promise<unknown>;
const create: Send = (plants) => plants.createMany(alice, drafts, undefined, () => {});
const createWithKey: Send = (plants) => plants.createMany(alice, drafts, "key", () => {});
const remove: Send = (plants) => plants.deleteMany(alice, ids);
const update: Send = (plants) => plants.patchMany(alice, ids, { tag: "x" });
const created = (replayed: boolean): Outcome => ({ kind: "created", id: 1n, replayed });

describe.each([
  ["finds no room", new PlantStoreError("storage-full", "Nothing was changed.")],
  ["fails by an operator's trigger", new Error("The trigger.")],
])("a bulk whose second group %s", (_, failure) => {
  /** Each write of the first group has this outcome. */
  async function fail(first: Outcome, send: Send): Promise<unknown> {
    let calls = 0;
    const writeAll = async (writes: readonly Write[]) => {
      if (calls++ > 0) throw failure;
      return writes.map(() => first);
    };
    const plants = new Plants({} as PlantReader, { write: async () => first, writeAll });
    return send(plants).catch((error) => error);
  }

  test.each<[what: string, first: Outcome, send: Send, message: RegExp]>([
    ["a create with a key", created(false), createWithKey, /been stored\. Send .+ the same Idemp/],
    ["a create", created(false), create, /been stored\. Look before you send it again/],
    ["a delete", { kind: "deleted" }, remove, /been deleted\. Send it again/],
    ["an update", { kind: "patched", content: fern }, update, /been updated\. Send it again/],
  ])("says that a part may be done, after %s", async (_, first, send, message) => {
    expect(await fail(first, send)).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(message),
      cause: failure,
    });
  });

  test("says that nothing was changed if so far nothing was", async () => {
    expect(await fail(created(true), createWithKey)).toBe(failure);
    expect(await fail({ kind: "missing" }, remove)).toBe(failure);
  });
});

test("a key is remembered for 24 hours", async () => {
  const sent: Write[] = [];
  const write = async (each: Write) => {
    sent.push(each);
    return created(false);
  };
  const plants = new Plants({} as PlantReader, { write, writeAll: async () => [] }, () => 1_000);
  await plants.create(alice, fern, "key");
  expect(sent).toMatchObject([{ key: { nowMs: 1_000, expiresAtMs: 86_401_000 } }]);
});
