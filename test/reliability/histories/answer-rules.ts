/**
 * What must hold of answers without any search: ids that were assigned, keys, and what lists show.
 * It says in words what an order that is searched for in vain would not.
 */
import type { Create, History, List, Operation, Result } from "./history.ts";

const assignedIdMax = 2n ** 53n - 1n;

type Answered<Kind extends Result["kind"], Asked extends Create | List> = Operation<Asked> & {
  readonly result: Extract<Result, { kind: Kind }>;
};

/** Every rule that is broken, in words. */
export function findBreaches({ operations }: History): string[] {
  const created = operations.filter(isCreated);
  const listed = operations.filter(isListed);
  const fresh = created.filter(({ call, result }) => call.id === undefined && !result.isReplayed);
  return [
    ...findIdBreaches(fresh),
    ...findKeyBreaches(created),
    ...listed.flatMap((list) => findStrangers(list, operations)),
    ...Map.groupBy(listed, ({ call }) => call.walk)
      .entries()
      .flatMap(([walk, pages]) => (walk === undefined ? [] : findWalkBreaches(pages, operations))),
  ];
}

function isCreated(operation: Operation): operation is Answered<"created", Create> {
  return operation.result?.kind === "created";
}

function isListed(operation: Operation): operation is Answered<"listed", List> {
  return operation.result?.kind === "listed";
}

/** Assigned ids are positive, come once, and a later plant's is higher. */
function findIdBreaches(fresh: readonly Answered<"created", Create>[]): string[] {
  const breaches: string[] = [];
  for (const { call, result, calledAtMs } of fresh) {
    const { id } = result;
    if (id < 1n || id > assignedIdMax) breaches.push(`"${call.name}" was assigned the id ${id}`);
    for (const other of fresh) {
      if (other.call.name === call.name) continue;
      if (other.result.id === id && other.call.name < call.name) {
        breaches.push(`"${call.name}" and "${other.call.name}" were both assigned the id ${id}`);
      }
      if (other.endedAtMs < calledAtMs && other.result.id > id) {
        breaches.push(
          `"${call.name}" came later than "${other.call.name}", with a lower id: ` +
            `${id} after ${other.result.id}`,
        );
      }
    }
  }
  return breaches;
}

/** Whatever was answered under one key is one plant, which was created once. */
function findKeyBreaches(created: readonly Answered<"created", Create>[]): string[] {
  const byKey = Map.groupBy(created, ({ call }) => call.key);
  return Array.from(byKey).flatMap(([key, answers]) => {
    if (key === undefined) return [];
    const plants = new Set(answers.map(({ call, result }) => `${result.id} "${call.name}"`));
    const firsts = answers.filter(({ result }) => !result.isReplayed);
    if (plants.size > 1) return [`the key ${key} stands for ${[...plants].join(" and ")}`];
    return firsts.length > 1 ? [`the key ${key} acted ${firsts.length} times`] : [];
  });
}

/** What is shown was sent, to this garden, before it was shown; and it is shown by ascending id. */
function findStrangers(list: Answered<"listed", List>, operations: readonly Operation[]): string[] {
  const { plants } = list.result;
  const strangers = plants.filter(
    (plant) =>
      !operations.some(
        ({ call, calledAtMs }) =>
          call.kind === "create" &&
          calledAtMs <= list.endedAtMs &&
          [undefined, call.name].includes(plant.name) &&
          [undefined, call.tag].includes(plant.tag) &&
          (plant.id === undefined || call.id === undefined || call.id === plant.id),
      ),
  );
  const isInOrder = plants.every(({ id }, index) => {
    const before = plants[index - 1]?.id;
    return id === undefined || before === undefined || before < id;
  });
  return [
    ...strangers.map(({ id, name }) => `a list shows ${id ?? ""} "${name}", which nobody had sent`),
    ...(isInOrder ? [] : [`a list is not in the order of ids: ${plants.map(({ id }) => id)}`]),
  ];
}

/**
 * Whoever follows the links to the end sees each plant that stayed all the time once, and none
 * twice.
 */
function findWalkBreaches(
  pages: readonly Answered<"listed", List>[],
  operations: readonly Operation[],
): string[] {
  const [first, last] = [pages[0], pages.at(-1)];
  if (!first || !last) return [];
  const seen = pages.flatMap(({ result }) => result.plants.map(({ name }) => name));
  const breaches = seen
    .filter((name, index) => name !== undefined && seen.indexOf(name) !== index)
    .map((name) => `a walk came by "${name}" twice`);
  const isWhole = first.call.after === undefined && last.result.next === undefined;
  if (!isWhole || !first.call.fields.includes("name")) return breaches;
  for (const { call, result, endedAtMs } of operations.filter(isCreated)) {
    const isThere = endedAtMs < first.calledAtMs && !result.isReplayed;
    const isDoomed = operations.some(
      (other) =>
        other.call.kind === "delete" &&
        other.call.id === result.id &&
        other.calledAtMs < last.endedAtMs &&
        other.result?.kind !== "refused",
    );
    if (isThere && !isDoomed && !seen.includes(call.name)) {
      breaches.push(`a walk never came by "${call.name}"`);
    }
  }
  return breaches;
}
