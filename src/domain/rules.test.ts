/** `decide` does what the histories' model of a garden does, whatever is in a group. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Call, Garden, renderEvent } from "../../proofs/histories/garden-model.ts";
import { create, put, remove } from "../../test/storage/tested-storage.ts";
import type { StoredKey } from "./keys.ts";
import { assignedIdMax, contentHash, type Plant, type PlantId } from "./plant.ts";
import type { GardenEvent, Outcome, Write } from "./ports.ts";
import { decide, type GardenRow, hashKeys, type LookUp } from "./rules.ts";

interface Sent {
  readonly garden: string;
  readonly call: Extract<Call, { readonly kind: "create" | "put" | "delete" }>;
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
const ifMatch = fc.oneof(fc.constant("*" as const), seen);
const isForNew = fc.constant(true);
const call = fc.oneof<fc.Arbitrary<Sent["call"]>[]>(
  fc.record(
    { kind: fc.constant("create"), id, name, tag, key },
    { requiredKeys: ["kind", "name", "tag"] },
  ),
  fc.record(
    { kind: fc.constant("put"), id, name, tag, ifMatch, isForNew },
    { requiredKeys: ["kind", "id", "name", "tag"] },
  ),
  fc.record({ kind: fc.constant("delete"), id, ifMatch }, { requiredKeys: ["kind", "id"] }),
);
const group = fc.array(fc.record({ garden: fc.constantFrom("one", "two"), call }), {
  minLength: 1,
  maxLength: 12,
});
const groups = fc.array(group, { minLength: 1, maxLength: 12 });
const plantsMax = fc.constantFrom(undefined, 0, 2, 5);

test("random groups have the outcomes of the model, and leave its plants and events", () => {
  const property = fc.property(groups, plantsMax, (sentGroups, max) => {
    const stored = new Stored(max);
    const models = new Map<string, Garden>();
    for (const sent of sentGroups) {
      const expected = sent.map((each) => {
        const model = models.get(each.garden) ?? Garden.limitedTo(max ?? Number.POSITIVE_INFINITY);
        const { garden, response } = model.take(each.call, "ada");
        models.set(each.garden, garden);
        return response;
      });
      const outcomes = stored.apply(sent.map(toWrite));
      expect(outcomes.map((outcome, at) => toResponse(outcome, sent[at]))).toEqual(expected);
      for (const [garden, model] of models) {
        const { response } = model.take({ kind: "list", include: "id" });
        expect(stored.list(garden)).toBe(response);
        expect(stored.events(garden)).toEqual(model.events);
      }
    }
  });
  fc.assert(property, { numRuns: 500, seed: 1 });
});

/** What `decide` looks up, as the changes of earlier groups have left it. */
class Stored implements LookUp {
  readonly #plantsMax: number | undefined;
  readonly #rows = new Map<string, GardenRow>();
  readonly #plants = new Map<string, Map<PlantId, Plant>>();
  readonly #keys = new Map<string, Map<string, StoredKey>>();
  readonly #events = new Map<string, readonly string[]>();

  constructor(max: number | undefined) {
    this.#plantsMax = max;
  }

  garden(garden: string): GardenRow | undefined {
    return this.#rows.get(garden);
  }

  plant(garden: string, plantId: PlantId): Plant | undefined {
    return this.#plants.get(garden)?.get(plantId);
  }

  key(garden: string, row: string): StoredKey | undefined {
    return this.#keys.get(garden)?.get(row);
  }

  apply(writes: readonly Write[]): readonly Outcome[] {
    const { outcomes, changes } = decide(hashKeys(writes), this, this.#plantsMax);
    for (const { garden, inserted, replaced, deleted, keyRows, events, ...row } of changes) {
      const plants = this.#plants.get(garden) ?? new Map<PlantId, Plant>();
      const keys = this.#keys.get(garden) ?? new Map<string, StoredKey>();
      expect(inserted.filter((plant) => plants.has(plant.id))).toEqual([]);
      expect(replaced.filter((plant) => !plants.has(plant.id))).toEqual([]);
      expect(deleted.filter((plantId) => !plants.delete(plantId))).toEqual([]);
      for (const plant of [...inserted, ...replaced]) plants.set(plant.id, plant);
      for (const keyRow of keyRows) keys.set(keyRow.rowKey, keyRow);
      expect([row.plants, row.keys]).toEqual([plants.size, keys.size]);
      this.#events.set(garden, [...this.events(garden), ...events.map(renderGardenEvent)]);
      expect(events.at(-1)?.seq).toBe(this.events(garden).length);
      this.#rows.set(garden, row);
      this.#plants.set(garden, plants);
      this.#keys.set(garden, keys);
    }
    return outcomes;
  }

  /** As the model has them. */
  events(garden: string): readonly string[] {
    return this.#events.get(garden) ?? [];
  }

  /** As the model has it. */
  list(garden: string): string {
    const plants = [...(this.#plants.get(garden)?.values() ?? [])];
    const byId = plants.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    return `200 [${byId.map((plant) => `{"id":${plant.id},${render(plant).slice(1)}`)}]`;
  }
}

function renderGardenEvent({ type, user, ...plant }: GardenEvent): string {
  return renderEvent(`plant.${type}`, user, plant);
}

function toWrite({ garden, call: sent }: Sent): Write {
  if (sent.kind === "create") {
    const [ofRequest, place] = sent.key?.split(" ") ?? [];
    const index = place === undefined ? undefined : Number(place);
    const idempotency = ofRequest ? { key: ofRequest, index, nowMs: 0, expiresAtMs: 1 } : undefined;
    return create({ ...sent, garden, idempotency });
  }
  const { ifMatch: match } = sent;
  const hashes = match === undefined || match === "*" ? match : ["other", match.entityTag];
  const preconditions = { ifMatch: hashes };
  if (sent.kind === "delete") return { ...remove(sent.id, garden), preconditions };
  const ifNoneMatch = sent.isForNew ? "*" : undefined;
  return put({ ...sent, garden, preconditions: { ...preconditions, ifNoneMatch } });
}

/** As the model has it. */
function toResponse(outcome: Outcome, sent: Sent | undefined): string {
  switch (outcome.kind) {
    case "created":
      return `201 /plants/${outcome.id}${outcome.replayed ? " replayed" : ""} ${render(sent?.call)}`;
    case "replaced":
    case "patched":
      return `200 ${render(sent?.call)}`;
    default:
      return statuses[outcome.kind];
  }
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
