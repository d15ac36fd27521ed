/**
 * The smallest part of a history that no order explains, so that a person can see what is wrong.
 */
import type { History, List, Operation, Plant, Result } from "./history.ts";
import { render } from "./history.ts";
import { isLinearizable, Undecided } from "./linearization.ts";

/** Of one plant, if its operations alone cannot be explained; else of two, or of the garden. */
export function explain({ garden, operations }: History): string {
  const places = findPlaces(operations);
  const ids = [...new Set(places.values())];
  const ones = ids.map((id) => [id]);
  const twos = ids.flatMap((one, index) => ids.slice(0, index).map((other) => [other, one]));
  for (const choices of [ones, twos]) {
    const faulty = choices
      .map((chosen) => ({ chosen, part: narrowAll(operations, chosen, places) }))
      .filter(({ part }) => isFaulty(part))
      .map(({ chosen, part }) => ({ chosen, part: shrink(part) }))
      .toSorted((one, other) => one.part.length - other.part.length)[0];
    if (faulty) return describe(garden, `plant ${faulty.chosen.join(" and ")}`, faulty.part);
  }
  return describe(garden, "several plants", shrink(operations));
}

function describe(garden: string, what: string, part: readonly Operation[]): string {
  return `in garden ${garden}, ${what}: no order explains these answers:\n${render(part)}`;
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

/** By the names and keys of plants, the ids that answers gave away. */
type Places = ReadonlyMap<string, bigint>;

function findPlaces(operations: readonly Operation[]): Places {
  const places = new Map<string, bigint>();
  for (const { call, result } of operations) {
    if (call.kind === "create") {
      const id = result?.kind === "created" ? result.id : call.id;
      if (id !== undefined) places.set(call.name, id);
      if (id !== undefined && call.key) places.set(call.key, id);
    }
    if (result?.kind !== "listed") continue;
    for (const { id, name } of result.plants) {
      if (id !== undefined && name !== undefined) places.set(name, id);
    }
  }
  return places;
}

/** The same operations as far as they tell of these plants, as if their ids had been chosen. */
function narrowAll(
  operations: readonly Operation[],
  ids: readonly bigint[],
  places: Places,
): Operation[] {
  return operations
    .map((operation) => narrow(operation, ids, places))
    .filter((operation) => operation !== undefined);
}

function narrow(
  operation: Operation,
  ids: readonly bigint[],
  places: Places,
): Operation | undefined {
  const { call, result } = operation;
  switch (call.kind) {
    case "delete":
      return ids.includes(call.id) ? operation : undefined;
    case "create": {
      // One that was not answered and never seen again may have been any plant.
      const otherwise = result ? undefined : ids[0];
      const known = places.get(call.name) ?? places.get(call.key ?? "") ?? otherwise;
      const id = result?.kind === "created" ? result.id : known;
      if (id === undefined || !ids.includes(id)) return undefined;
      return { ...operation, call: { ...call, id } };
    }
    case "list": {
      const seen = result?.kind === "listed" ? lookFor(ids, call, result, places) : undefined;
      if (!seen) return undefined;
      return { ...operation, call: { kind: "list", fields: call.fields }, result: seen };
    }
  }
}

/** What a list tells of these plants; absent where it does not tell of all. */
function lookFor(
  ids: readonly bigint[],
  { after }: List,
  { plants, next }: Extract<Result, { kind: "listed" }>,
  places: Places,
): Result | undefined {
  const idOf = (plant: Partial<Plant>) => plant.id ?? places.get(plant.name ?? "");
  const shown = plants.map((plant) => ({ plant, id: idOf(plant) }));
  const lastId = shown.at(-1)?.id;
  const isCovered = (id: bigint) =>
    (after === undefined || id > after) && (!next || (lastId !== undefined && id <= lastId));
  if (!ids.every(isCovered) || shown.some(({ id }) => id === undefined)) return undefined;
  const wanted = shown.filter(({ id }) => id !== undefined && ids.includes(id));
  return { kind: "listed", plants: wanted.map(({ plant }) => plant) };
}
