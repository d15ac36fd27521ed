/** What a bulk reports if the storage fails in the middle of it, and how long a key is remembered. */
import { describe, expect, test } from "bun:test";
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import { Plants, slicePlantsMax } from "./plants.ts";
import type { Outcome, PlantReader, Write } from "./ports.ts";

const alice: Caller = { credential: "t", user: "alice", garden: "alice", scope: "write" };
const fern = { name: "Fern", tag: "" };

/** One more than fits in the first slice of a bulk. */
const ids = Array.from({ length: slicePlantsMax + 1 }, (_, index) => BigInt(index));
const drafts = ids.map(() => fern);

/** A storage that isn't read in these tests. */
const noReader = {} as PlantReader;

describe.each([
  {
    reason: "the storage is full",
    failure: new PlantStoreError("storage-full", "Nothing was changed."),
  },
  { reason: "an operator's trigger fails", failure: new Error("The trigger.") },
])("if $reason at the second slice,", ({ failure }) => {
  /** The writes of the first slice all have this outcome. */
  function makePlants(firstOutcome: Outcome): Plants {
    let slices = 0;
    const queue = {
      write: async () => firstOutcome,
      async writeAll(writes: readonly Write[]) {
        slices++;
        if (slices > 1) throw failure;
        return writes.map(() => firstOutcome);
      },
    };
    return new Plants(noReader, queue);
  }

  test("a bulk create with a key says to send it again with that key", async () => {
    const plants = makePlants({ kind: "created", id: 1n, replayed: false });
    const creating = plants.createMany(alice, drafts, "key", () => {});
    expect(await creating.catch((error) => error)).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining(
        "Some of the plants may have been stored. Send it again with the same Idempotency-Key.",
      ),
      cause: failure,
    });
  });

  test("a bulk create without a key says to look before sending it again", async () => {
    const plants = makePlants({ kind: "created", id: 1n, replayed: false });
    const creating = plants.createMany(alice, drafts, undefined, () => {});
    expect(await creating.catch((error) => error)).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining(
        "Some of the plants may have been stored. Look before you send it again",
      ),
      cause: failure,
    });
  });

  test("a bulk delete says to send it again", async () => {
    const plants = makePlants({ kind: "deleted" });
    const deleting = plants.deleteMany(alice, ids);
    expect(await deleting.catch((error) => error)).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("Some of the plants may have been deleted. Send it again"),
      cause: failure,
    });
  });

  test("a bulk update says to send it again", async () => {
    const plants = makePlants({ kind: "patched", content: fern });
    const updating = plants.patchMany(alice, ids, { tag: "x" });
    expect(await updating.catch((error) => error)).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("Some of the plants may have been updated. Send it again"),
      cause: failure,
    });
  });

  test("a bulk create whose first slice was only replayed reports the failure itself", async () => {
    const plants = makePlants({ kind: "created", id: 1n, replayed: true });
    const creating = plants.createMany(alice, drafts, "key", () => {});
    expect(await creating.catch((error) => error)).toBe(failure);
  });

  test("a bulk delete that has found no plant so far reports the failure itself", async () => {
    const plants = makePlants({ kind: "missing" });
    const deleting = plants.deleteMany(alice, ids);
    expect(await deleting.catch((error) => error)).toBe(failure);
  });
});

test("a key is remembered for 24 hours", async () => {
  const sent: Write[] = [];
  const queue = {
    async write(write: Write): Promise<Outcome> {
      sent.push(write);
      return { kind: "created", id: 1n, replayed: false };
    },
    writeAll: async () => [],
  };
  const plants = new Plants(noReader, queue, () => 1_000);
  await plants.create(alice, fern, "key");
  expect(sent).toMatchObject([{ key: { nowMs: 1_000, expiresAtMs: 86_401_000 } }]);
});
