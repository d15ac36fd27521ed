/** Random groups of writes for fast-check, and what the model of a garden says they come to. */
import fc from "fast-check";
import { assignedIdMax, type ContentHashes, contentHash, type Plant } from "../src/domain/plant.ts";
import type { GardenEvent, Outcome, Write } from "../src/domain/ports.ts";
import { type Call, Garden, renderEvent, type Tagged } from "./garden-model.ts";
import { create, put, remove } from "./tested-storage.ts";

export interface SentCall {
  readonly garden: string;
  readonly call: Extract<Call, { readonly kind: "create" | "put" | "patch" | "delete" }>;
}

// Few of everything, so that calls meet.
const id = fc.constantFrom(-1n, 1n, 2n, 3n, assignedIdMax - 1n, assignedIdMax, 2n ** 63n - 1n);
const name = fc.constantFrom("Fern", "Moss");
const tag = fc.constantFrom("", "shade");
/** Of a plant alone, or with its place in a bulk. The last one is in another row. */
const key = fc.constantFrom("a", "b", "a 0", "a 1", "a 300");
const seen = fc.record({ id, name, tag }).map((plant) => {
  return { ...plant, entityTag: contentHash(plant) };
});
const tagged = fc.oneof(fc.constant("*" as const), seen);
const conditions = { ifMatch: tagged, ifNoneMatch: tagged };
const makeCreate = (optional: { id?: typeof id; key: fc.Arbitrary<string> }) =>
  fc.record(
    { kind: fc.constant("create" as const), name, tag, ...optional },
    { requiredKeys: ["kind", "name", "tag"] },
  );
/** PostgreSQL does these, without an id and without a place in a bulk, in one statement. */
const plainCall = makeCreate({ key: fc.constantFrom("a", "b", "c", "d", "e") });
const call = fc.oneof<fc.Arbitrary<SentCall["call"]>[]>(
  makeCreate({ id, key }),
  fc.record(
    { kind: fc.constant("put"), id, name, tag, ...conditions },
    { requiredKeys: ["kind", "id", "name", "tag"] },
  ),
  fc.record(
    { kind: fc.constant("patch"), id, name, tag, ...conditions },
    { requiredKeys: ["kind", "id"] },
  ),
  fc.record({ kind: fc.constant("delete"), id, ...conditions }, { requiredKeys: ["kind", "id"] }),
);
const makeGroup = (call: fc.Arbitrary<SentCall["call"]>) =>
  fc.array(fc.record({ garden: fc.constantFrom("one", "two"), call }), {
    minLength: 1,
    maxLength: 12,
  });
const group = fc.oneof(makeGroup(call), makeGroup(plainCall));

/** How many plants a garden may hold, in words and as `plantsMax`. */
export const quotas = [
  ["without a quota", undefined],
  ["in gardens without room", 0],
  ["in gardens of up to 2", 2],
  ["in gardens of up to 5", 5],
] as const;

/** Groups that are applied one after the other to the same two gardens. */
export const groups = fc.array(group, { minLength: 1, maxLength: 12 });

/** The gardens as the model has them. */
export class ModelGardens {
  readonly #gardens = new Map<string, Garden>();

  constructor(private readonly plantsMax: number | undefined) {}

  /** What the calls of a group return, one after the other. */
  take(group: readonly SentCall[]): string[] {
    return group.map(({ garden, call }) => {
      const before =
        this.#gardens.get(garden) ?? Garden.limitedTo(this.plantsMax ?? Number.POSITIVE_INFINITY);
      const { garden: after, response } = before.take(call, "ada");
      this.#gardens.set(garden, after);
      return response;
    });
  }

  /** What is in each garden, to be compared with `describeGarden`. */
  describe(): [garden: string, text: string][] {
    return Array.from(this.#gardens, ([name, garden]) => {
      const { response } = garden.take({ kind: "list", include: "id" });
      return [name, joinLines(response, garden.events, garden.events.length)];
    });
  }
}

/** What is stored in a garden, as the model describes it. */
export function describeGarden(
  plants: readonly Plant[],
  events: readonly GardenEvent[],
  lastEvent: number,
): string {
  const listed = plants.map((plant) => `{"id":${plant.id},${render(plant).slice(1)}`);
  const happened = events.map(({ type, user, plant }) => renderEvent(`plant.${type}`, user, plant));
  return joinLines(`200 [${listed}]`, happened, lastEvent);
}

function joinLines(list: string, events: readonly string[], lastEvent: number): string {
  return [list, ...events, `last event: ${lastEvent}`].join("\n");
}

/** A call as a write to a garden of this name. */
export function toWrite({ call: sent }: SentCall, garden: string): Write {
  if (sent.kind === "create") {
    const { key, ...fields } = sent;
    const [ofRequest, place] = key?.split(" ") ?? [];
    const index = place === undefined ? undefined : Number(place);
    const idempotency = ofRequest ? { key: ofRequest, index, nowMs: 0, expiresAtMs: 1 } : undefined;
    return create({ ...fields, garden, idempotency });
  }
  const { kind, id: plantId, ifMatch, ifNoneMatch, ...rest } = sent;
  const preconditions = { ifMatch: toContents(ifMatch), ifNoneMatch: toContents(ifNoneMatch) };
  const named = remove(plantId, garden);
  if (kind === "delete") return { ...named, preconditions };
  if (kind === "patch") return { ...named, kind, change: rest, preconditions };
  return put({ ...rest, garden, id: plantId, preconditions });
}

function toContents(tagged: Tagged | undefined): ContentHashes | undefined {
  return tagged === undefined || tagged === "*" ? tagged : ["other", tagged.entityTag];
}

/** An outcome as the model returns it. */
export function toResponse(outcome: Outcome, sent: SentCall | undefined): string {
  const { kind } = outcome;
  if (kind === "replaced") return `200 ${render(sent?.call)}`;
  if (kind === "patched") return `200 ${render(outcome.content)}`;
  if (kind !== "created") return statuses[kind];
  return `201 /plants/${outcome.id}${outcome.replayed ? " replayed" : ""} ${render(sent?.call)}`;
}

const statuses = {
  deleted: "204",
  missing: "404",
  taken: "409",
  exhausted: "409",
  "precondition-failed": "412",
  mismatch: "422",
  full: "507",
} as const;

function render({ name, tag }: Partial<Plant> = {}): string {
  return JSON.stringify({ name, tag });
}
