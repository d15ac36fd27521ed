/** Reports a small part of a history that no order of its operations explains. */
import { type History, isWrite, type Operation, type Result, render } from "./history.ts";
import { isLinearizable, Undecided } from "./linearization.ts";

/** Empty if the history is linearizable. */
export function check({ garden, operations }: History): string[] {
  try {
    if (isLinearizable(operations)) return [];
  } catch (error) {
    if (error instanceof Undecided) return [`undecided: garden ${garden}`];
    throw error;
  }
  const part = render(shrink(operations));
  return [`garden ${garden}: no order explains these results:\n${part}`];
}

function isWrong(operations: readonly Operation[]): boolean {
  try {
    return !isLinearizable(operations);
  } catch (error) {
    if (error instanceof Undecided) return false;
    throw error;
  }
}

/** Up to the first result that nothing explains, without operations that do not matter. */
function shrink(operations: readonly Operation[]): readonly Operation[] {
  const ends = operations.filter(({ result }) => result).map(({ endedAtMs }) => endedAtMs);
  const endMs = ends.toSorted((a, b) => a - b).find((end) => isWrong(until(operations, end)));
  let part = endMs === undefined ? operations : until(operations, endMs);
  for (const operation of part) {
    if (operation.result && hasEffect(operation.result)) continue;
    const smaller = part.filter((other) => other !== operation);
    if (isWrong(smaller) && !isListed(operation, smaller)) part = smaller;
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
    .filter(({ call, result }) => result || isWrite(call));
}

function hasEffect(result: Result): boolean {
  if (result.kind === "created") return !result.isReplayed;
  return result.kind === "replaced" || result.kind === "deleted";
}

/** Without its create or put, a listed plant would seem to come from nowhere. */
function isListed({ call }: Operation, operations: readonly Operation[]): boolean {
  if (call.kind !== "create" && call.kind !== "put") return false;
  return operations.some(({ result }) => {
    if (result?.kind === "found") return result.plant.name === call.name;
    return result?.kind === "listed" && result.plants.some(({ name }) => name === call.name);
  });
}
