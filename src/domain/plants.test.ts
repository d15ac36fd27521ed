/** Failures in the middle of a bulk, and outcomes that are hard to reach with a real storage. */
import { describe, expect, test } from "bun:test";
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import { groupPlantsMax, Plants } from "./plants.ts";
import type { Outcome, PlantReader, Write } from "./ports.ts";

const alice: Caller = { credential: "t", user: "alice", garden: "alice", scope: "write" };
const fern = { name: "Fern", tag: "" };
const failure = new PlantStoreError("storage-full", "Nothing was changed.");

/** Over a writer with this outcome for each write of the first call; the second one fails. */
function plantsWith(outcome: Outcome, error: Error = failure): Plants {
  let calls = 0;
  const writeAll = async (writes: readonly Write[]) => {
    if (calls++ > 0) throw error;
    return writes.map(() => outcome);
  };
  return new Plants({} as PlantReader, { write: async () => outcome, writeAll });
}

const created = (replayed: boolean): Outcome => ({ kind: "created", id: 1n, replayed });

describe("a bulk whose second group fails", () => {
  const ids = Array.from({ length: groupPlantsMax + 1 }, (_, index) => BigInt(index));
  const create = (key?: string) => (plants: Plants) =>
    plants.createMany(
      alice,
      ids.map(() => fern),
      key,
      () => {},
    );
  const remove = (plants: Plants) => plants.deleteMany(alice, ids);
  const update = (plants: Plants) => plants.patchMany(alice, ids, { tag: "x" });

  test.each<[first: Outcome, send: (plants: Plants) => Promise<unknown>, message: RegExp]>([
    [created(false), create("key"), /been stored\. Send it again with the same Idempotency-Key\./],
    [created(false), create(), /been stored\. Look before .+ they would be stored twice\./],
    [{ kind: "deleted" }, remove, /been deleted\. Send it again: that is safe\./],
    [{ kind: "patched", content: fern }, update, /been updated\. Send it again: that is safe\./],
  ])("says that a part may be done, after %p", async (first, send, message) => {
    expect(await send(plantsWith(first)).catch((error) => error)).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(message),
      cause: failure,
    });
  });

  test("says so whatever has failed", async () => {
    const odd = new Error("An operator's trigger.");
    const sent = remove(plantsWith({ kind: "deleted" }, odd));
    expect(await sent.catch((error) => error)).toMatchObject({ code: "unavailable", cause: odd });
  });

  test.each<[first: Outcome, send: (plants: Plants) => Promise<unknown>]>([
    [created(true), create("key")],
    [{ kind: "missing" }, remove],
  ])("says that nothing was changed, after %p", async (first, send) => {
    expect(await send(plantsWith(first)).catch((error) => error)).toBe(failure);
  });
});

test("a garden with too many keys says what to do", async () => {
  const plants = plantsWith({ kind: "full", limit: "keys", max: 10_000 });
  expect(await plants.create(alice, fern, "key").catch((error) => error)).toMatchObject({
    code: "storage-full",
    message: expect.stringMatching(/Retry without .* or wait/),
  });
});

test("a key is remembered for 24 hours", async () => {
  let sent: Write | undefined;
  const write = async (each: Write) => {
    sent = each;
    return created(false);
  };
  const plants = new Plants({} as PlantReader, { write, writeAll: async () => [] }, () => 1_000);
  await plants.create(alice, fern, "key");
  expect(sent).toMatchObject({ key: { nowMs: 1_000, expiresAtMs: 86_401_000 } });
});
