/** Idempotency keys over time, and outcomes that clients rarely see. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { GroupCommit } from "../storage/group-commit.ts";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import type { PlantDraft } from "./plant.ts";
import { groupPlantsMax, Plants } from "./plants.ts";
import type { Outcome, Write } from "./ports.ts";

const alice: Caller = { credential: "t", user: "alice", garden: "alice", scope: "write" };
const dayMs = 24 * 60 * 60 * 1000;

let folder: ReturnType<typeof makeTemporaryFolder>;
let storage: Storage;
let plants: Plants;
let nowMs: number;

beforeEach(async () => {
  folder = makeTemporaryFolder();
  storage = await openStorage(join(folder.path, "plants.db"), { isServing: true });
  nowMs = 1_000_000;
  const writer = new GroupCommit(storage);
  plants = new Plants(storage, writer, () => nowMs);
});

afterEach(async () => {
  await storage.close();
  folder[Symbol.dispose]();
});

function fern(id?: bigint, tag = ""): PlantDraft {
  return id === undefined ? { name: "Fern", tag } : { name: "Fern", tag, id };
}

describe("create with an idempotency key", () => {
  test("distinguishes requests whose fields look alike when joined", async () => {
    await plants.create(alice, { name: 'a","b', tag: "" }, "key");
    const other = await plants.create(alice, { name: "a", tag: 'b","' }, "key").catch((e) => e);
    expect(other).toMatchObject({ code: "idempotency-mismatch" });
  });

  test("remembers the key for 24 hours, which its use does not lengthen", async () => {
    await plants.create(alice, fern(), "key");
    nowMs += dayMs - 1;
    expect(await plants.create(alice, fern(), "key")).toMatchObject({ id: 1n, replayed: true });
    nowMs += 1;
    expect(await plants.create(alice, fern(9n), "key")).toMatchObject({ id: 9n, replayed: false });
  });
});

/** Outcomes that are hard to reach with a real storage. */
describe("an outcome of the writer", () => {
  test.each([
    ["storage-full", "key", "Send it again with the same Idempotency-Key."],
    ["unavailable", undefined, "without an Idempotency-Key, they would be stored twice."],
  ] as const)(
    "that fails a later slice (%s, key %s) says that a part may be stored",
    async (code, key, advice) => {
      let [calls, replayed] = [0, false];
      const failure = new PlantStoreError(code, "Nothing was changed.");
      const writeAll = async (writes: readonly Write[]): Promise<Outcome[]> => {
        if (calls++ > 0) throw failure;
        return writes.map((_, index) => ({ kind: "created", id: BigInt(index), replayed }));
      };
      const writer = { write: () => Promise.reject(failure), writeAll };
      const failing = new Plants(storage, writer);
      const slices = (count: number) =>
        Array.from({ length: count * groupPlantsMax }, () => fern());
      const refused = await failing
        .createMany(alice, slices(2), key, () => {})
        .catch((error) => error);
      expect(refused.code).toBe("unavailable");
      expect(refused.message).toContain("Some of the plants may have been stored.");
      expect(refused.message).toContain(advice);
      // A single slice is stored whole or not at all.
      const alone = failing.createMany(alice, slices(1), key, () => {});
      expect(await alone.catch((error) => error)).toBe(failure);
      // When the request is sent again, its first slice creates nothing.
      [calls, replayed] = [0, true];
      const again = failing.createMany(alice, slices(2), key, () => {});
      expect(await again.catch((error) => error)).toBe(failure);
    },
  );

  test("that fails a later slice of deletions says that a part may be deleted", async () => {
    const failure = new PlantStoreError("storage-full", "Nothing was changed.");
    const failing = (kind: "deleted" | "missing") => {
      let calls = 0;
      const writeAll = async (writes: readonly Write[]): Promise<Outcome[]> => {
        if (calls++ > 0) throw failure;
        return writes.map(() => ({ kind }));
      };
      const writer = { write: () => Promise.reject(failure), writeAll };
      const ids = Array.from({ length: 257 }, (_, index) => BigInt(index));
      return new Plants(storage, writer).deleteMany(alice, ids).catch((e) => e);
    };
    expect(await failing("deleted")).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/may have been deleted\. Send it again: that is safe\./),
    });
    expect(await failing("missing")).toBe(failure);
  });

  test.each<[Outcome, code: string, message: RegExp]>([
    [{ kind: "exhausted" }, "conflict", /No id/],
    [{ kind: "full", limit: "keys", max: 10_000 }, "storage-full", /Retry without .* or wait/],
  ])("%j says what to do", async (outcome, code, message) => {
    const writer = { write: async () => outcome, writeAll: async () => [outcome] };
    const creating = new Plants(storage, writer).create(alice, fern(), "key");
    const refused = await creating.catch((error) => error);
    expect(refused).toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
