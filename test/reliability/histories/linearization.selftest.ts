/**
 * The search against the plainest one there is, which tries every order, on small histories by
 * chance.
 */
import { expect, test } from "bun:test";
import { makeDice, spread } from "../../dice.ts";
import { Garden } from "./garden-model.ts";
import type { Call, Operation, Result } from "./history.ts";
import { isLinearizable } from "./linearization.ts";
import type { Dice } from "./plan.ts";

const historiesCount = 2_000;
const operationsCount = 6;

/** Whether some order of what is left is right from here on. */
function hasOrder(garden: Garden, left: readonly Operation[], done: readonly Operation[]): boolean {
  if (left.every(({ result }) => result === undefined)) return true;
  return left.some((operation) => {
    const isTooSoon = left.some(
      ({ result, endedAtMs }) => result && endedAtMs < operation.calledAtMs,
    );
    const isTooLate = done.some(({ calledAtMs }) => calledAtMs > operation.endedAtMs);
    const after = isTooSoon || isTooLate ? undefined : garden.after(operation);
    const others = left.filter((other) => other !== operation);
    return after !== undefined && hasOrder(after, others, [...done, operation]);
  });
}

function drawOperation(dice: Dice, index: number): Operation {
  const calledAtMs = dice(12);
  const [call, results] = drawCall(dice, `plant ${index}`);
  const result = dice(4) === 0 && call.kind !== "list" ? undefined : results[dice(results.length)];
  const isForEver = result === undefined && dice(2) === 0;
  const endedAtMs = isForEver ? Number.POSITIVE_INFINITY : calledAtMs + 1 + dice(8);
  return { who: "", call, result, calledAtMs, endedAtMs };
}

/** A call, and what it may be told, be it right or not. */
function drawCall(dice: Dice, name: string): [Call, (Result | undefined)[]] {
  const id = BigInt(1 + dice(2));
  const refused = (status: 404 | 409): Result => ({ kind: "refused", status });
  switch (dice(4)) {
    case 0: {
      const isAssigned = dice(3) === 0;
      const call: Call = { kind: "create", name, tag: "", id: isAssigned ? undefined : id };
      return [call, [{ kind: "created", id, isReplayed: false }, refused(409)]];
    }
    case 1: {
      const key = "key";
      const results = [false, true].map(
        (isReplayed): Result => ({ kind: "created", id, isReplayed }),
      );
      return [{ kind: "create", name: key, tag: "", id, key }, results];
    }
    case 2:
      return [{ kind: "delete", id }, [{ kind: "deleted" }, refused(404)]];
    default: {
      const lists = [[], [1n], [2n], [1n, 2n]].map(
        (ids): Result => ({ kind: "listed", plants: ids.map((each) => ({ id: each })) }),
      );
      return [{ kind: "list", fields: ["id"] }, lists];
    }
  }
}

test("the search finds an order whenever there is one, and only then", () => {
  const found = { yes: 0, no: 0 };
  const differing: number[] = [];
  for (let seed = 1; seed <= historiesCount; seed++) {
    const dice = makeDice(spread(seed));
    const operations = Array.from({ length: operationsCount }, (_, index) =>
      drawOperation(dice, index),
    );
    const isExplained = isLinearizable(operations);
    found[isExplained ? "yes" : "no"]++;
    if (isExplained !== hasOrder(Garden.empty, operations, [])) differing.push(seed);
  }
  expect(differing).toEqual([]);
  expect(Math.min(found.yes, found.no)).toBeGreaterThan(historiesCount / 20);
});
