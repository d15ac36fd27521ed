/** A small part of a history that no order explains, so that a person can see what is wrong. */
import type { History, Operation, Result } from "./history.ts";
import { render } from "./history.ts";
import { isLinearizable, Undecided } from "./linearization.ts";

export function explain({ garden, operations }: History): string {
  const part = render(shrink(operations));
  return `in garden ${garden}: no order explains these answers:\n${part}`;
}

function isFaulty(operations: readonly Operation[]): boolean {
  try {
    return !isLinearizable(operations);
  } catch (error) {
    if (error instanceof Undecided) return false;
    throw error;
  }
}

/** Up to the first answer that nothing explains, without what does not matter to it. */
function shrink(operations: readonly Operation[]): readonly Operation[] {
  const ends = operations.filter(({ result }) => result).map(({ endedAtMs }) => endedAtMs);
  const endMs = ends.toSorted((a, b) => a - b).find((end) => isFaulty(until(operations, end)));
  let part = endMs === undefined ? operations : until(operations, endMs);
  for (const operation of part) {
    if (operation.result && mayChange(operation.result)) continue;
    const smaller = part.filter((other) => other !== operation);
    if (isFaulty(smaller) && !isShown(operation, smaller)) part = smaller;
  }
  return part;
}

/** What was known at that moment. */
function until(operations: readonly Operation[], momentMs: number): Operation[] {
  return operations
    .filter(({ calledAtMs }) => calledAtMs <= momentMs)
    .map((operation) =>
      operation.endedAtMs <= momentMs
        ? operation
        : { ...operation, result: undefined, endedAtMs: Number.POSITIVE_INFINITY },
    )
    .filter(({ call, result }) => result || call.kind !== "list");
}

function mayChange(result: Result): boolean {
  return result.kind === "deleted" || (result.kind === "created" && !result.isReplayed);
}

/** Without its create a plant would seem to come from nowhere. */
function isShown({ call }: Operation, operations: readonly Operation[]): boolean {
  return operations.some(
    ({ result }) =>
      call.kind === "create" &&
      result?.kind === "listed" &&
      result.plants.some(({ name }) => name === call.name),
  );
}
