/** What storage promises of idempotency keys. */
import { describe, expect, test } from "bun:test";
import type { Write } from "../../src/domain/ports.ts";
import { applyPatiently, create, created, remove, type TestedStorage } from "./tested-storage.ts";

export function describeKeys(tested: () => TestedStorage): void {
  describe("idempotency keys", () => {
    const apply = (...writes: Write[]) => applyPatiently(tested().storage, writes);
    const ids = async () =>
      (await tested().storage.list("home", undefined, 1_000)).map(({ id }) => id);

    const dayMs = 86_400_000;

    function keyed(name: string, nowMs = 0, others: { key?: string; index?: number } = {}) {
      const idempotency = { key: "k", nowMs, expiresAtMs: nowMs + dayMs, ...others };
      return create({ name, idempotency });
    }

    const ofBulk = (index: number, name = `plant ${index}`, nowMs = 0) =>
      keyed(name, nowMs, { index });

    test("replay the first outcome, even within one group and after a deletion", async () => {
      expect(await apply(keyed("r"), keyed("r"))).toEqual([created(1n), created(1n, true)]);
      await apply(remove(1n));
      expect(await apply(keyed("r"))).toEqual([created(1n, true)]);
      expect(await ids()).toEqual([]);
    });

    test("refuse another request under the same key, but not in another garden", async () => {
      await apply(keyed("r"));
      const elsewhere = { ...keyed("other"), garden: "other" };
      expect(await apply(keyed("other"), elsewhere)).toEqual([{ kind: "mismatch" }, created(1n)]);
      expect(await ids()).toEqual([1n]);
    });

    test("hold until they expire and not longer", async () => {
      await apply(keyed("r", 0));
      expect(await apply(keyed("other", dayMs - 1))).toEqual([{ kind: "mismatch" }]);
      expect(await apply(keyed("other", dayMs))).toEqual([created(2n)]);
      expect(await apply(keyed("other", dayMs + 1))).toEqual([created(2n, true)]);
    });

    test("are forgotten in bounded steps, until there are none left", async () => {
      const many = Array.from({ length: 2_500 }, (_, index) => keyed("r", 0, { key: `k${index}` }));
      await apply(...many);
      const { storage } = tested();
      let steps = 1;
      while (await storage.forgetKeys(dayMs)) steps++;
      expect(steps).toBeGreaterThan(1);
      expect(await storage.forgetKeys(dayMs)).toBe(false);
      expect(await apply(many[2_499] as Write)).toEqual([created(2_501n)]);
    });

    test("are forgotten once expired, and only then", async () => {
      await apply(keyed("r", 0));
      await tested().storage.forgetKeys(dayMs - 1);
      expect(await apply(keyed("other", 0))).toEqual([{ kind: "mismatch" }]);
      await tested().storage.forgetKeys(dayMs);
      expect(await apply(keyed("other", 0))).toEqual([created(2n)]);
    });

    test("replay the plants of a bulk, in whatever groups they come", async () => {
      const bulk = Array.from({ length: 600 }, (_, index) => ofBulk(index));
      await apply(...bulk.slice(0, 300));
      const outcomes = await apply(...bulk);
      expect(outcomes).toEqual(bulk.map((_, index) => created(BigInt(index + 1), index < 300)));
      expect(await apply(bulk[255] as Write, bulk[256] as Write)).toEqual([
        created(256n, true),
        created(257n, true),
      ]);
      expect(await ids()).toHaveLength(600);
    });

    test("tell a plant of a bulk from a single one, and expire with it", async () => {
      await apply(keyed("plant 0"), ofBulk(0));
      expect(await ids()).toHaveLength(2);
      expect(await apply(ofBulk(0, "other", dayMs - 1))).toEqual([{ kind: "mismatch" }]);
      expect(await apply(ofBulk(0, "other", dayMs))).toEqual([created(3n)]);
    });

    test("that are alike at their start or end are not taken for each other", async () => {
      const keys = ["k", "kk", "k".repeat(14), "k".repeat(15), `${"k".repeat(14)}l`, "K"];
      const writes = keys.map((key) => keyed("r", 0, { key }));
      for (const isReplayed of [false, true]) {
        const outcomes = keys.map((_, index) => created(BigInt(index + 1), isReplayed));
        expect(await apply(...writes)).toEqual(outcomes);
      }
    });
  });
}
