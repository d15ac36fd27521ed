/** What storage promises of idempotency keys. */
import { describe, expect, test } from "bun:test";
import type { Write } from "../../src/domain/storage.ts";
import { applyPatiently, create, created, remove, type TestedStorage } from "./tested-storage.ts";

export function describeKeys(tested: () => TestedStorage): void {
  describe("idempotency keys", () => {
    const apply = (...writes: Write[]) => applyPatiently(tested().storage, writes);
    const ids = async () =>
      (await tested().storage.list("home", undefined, 1_000)).map(({ id }) => id);

    const dayMs = 86_400_000;

    function keyed(name: string, nowMs = 0, others: { key?: string; line?: number } = {}) {
      const idempotency = { key: "k", nowMs, expiresAtMs: nowMs + dayMs, ...others };
      return create({ name, idempotency });
    }

    const line = (number: number, name = `plant ${number}`, nowMs = 0) =>
      keyed(name, nowMs, { line: number });

    test("replay the first outcome, also within one group and after a deletion", async () => {
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

    test("replay the lines of a batch, in whatever groups they come", async () => {
      const lines = Array.from({ length: 600 }, (_, number) => line(number));
      await apply(...lines.slice(0, 300));
      const outcomes = await apply(...lines);
      expect(outcomes).toEqual(lines.map((_, index) => created(BigInt(index + 1), index < 300)));
      expect(await apply(lines[255] as Write, lines[256] as Write)).toEqual([
        created(256n, true),
        created(257n, true),
      ]);
      expect(await ids()).toHaveLength(600);
    });

    test("tell a line from a single plant, and expire with it", async () => {
      await apply(keyed("plant 0"), line(0));
      expect(await ids()).toHaveLength(2);
      expect(await apply(line(0, "other", dayMs - 1))).toEqual([{ kind: "mismatch" }]);
      expect(await apply(line(0, "other", dayMs))).toEqual([created(3n)]);
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
