/**
 * Decides the outcomes of a group of writes in their order, over what the database held when their
 * gardens were locked, and what is to be stored for it. It sends no statement of its own.
 */
import { assignedIdMax, type PlantId } from "../../domain/plant.ts";
import { type CreateWrite, countedIdMax, type Outcome, type Write } from "../../domain/storage.ts";
import type { Quota } from "./quota.ts";

export interface KeptKey {
  readonly garden: string;
  readonly key: string;
  readonly request: string;
  readonly plantId: PlantId;
  readonly expiresAtMs: number;
}

export interface NewPlant {
  readonly garden: string;
  readonly id: PlantId;
  readonly name: string;
  readonly tag: string;
}

/** What the outcomes depend on. */
export interface Known {
  readonly lastIds: ReadonlyMap<string, PlantId>;
  /** Of the plants that the group names by id, those that exist. */
  readonly plants: readonly { readonly garden: string; readonly id: PlantId }[];
  readonly keys: readonly KeptKey[];
  /** Absent: gardens are never full. */
  readonly quota: Quota | undefined;
  /** Whether plants may have ids that their garden has not counted, as of whoever loaded them. */
  readonly isUncounted: boolean;
  /** The first id from this one on that no stored plant of the garden has. */
  findFreeId(garden: string, from: PlantId): Promise<PlantId>;
}

export interface Decision {
  readonly outcomes: readonly Outcome[];
  readonly plants: readonly NewPlant[];
  readonly keys: readonly KeptKey[];
  /** Counters that have moved. */
  readonly lastIds: ReadonlyMap<string, PlantId>;
}

export async function decide(writes: readonly Write[], known: Known): Promise<Decision> {
  const group = new Group(known);
  const outcomes: Outcome[] = [];
  for (const write of writes) {
    outcomes.push(write.kind === "create" ? await group.create(write) : group.delete(write));
  }
  return { outcomes, ...group.changes() };
}

/** One text for a garden and a name in it. No name of a garden holds the character between them. */
export function pair(garden: string, rest: string | PlantId): string {
  return `${garden}\0${rest}`;
}

class Group {
  readonly #known: Known;
  readonly #exists = new Set<string>();
  readonly #keys = new Map<string, KeptKey>();
  readonly #newPlants = new Map<string, NewPlant>();
  readonly #newKeys = new Map<string, KeptKey>();
  readonly #lastIds = new Map<string, PlantId>();

  constructor(known: Known) {
    this.#known = known;
    for (const { garden, id } of known.plants) this.#exists.add(pair(garden, id));
    for (const key of known.keys) this.#keys.set(pair(key.garden, key.key), key);
  }

  async create(write: CreateWrite): Promise<Outcome> {
    const { garden, idempotency } = write;
    if (idempotency) {
      const kept = this.#keys.get(pair(garden, idempotency.key));
      if (kept && kept.expiresAtMs > idempotency.nowMs) {
        if (kept.request !== idempotency.request) return { kind: "mismatch" };
        return { kind: "created", id: kept.plantId, replayed: true };
      }
    }
    if (write.id !== undefined && this.#exists.has(pair(garden, write.id))) {
      return { kind: "taken" };
    }
    const { quota } = this.#known;
    if (quota?.isFull(garden)) return { kind: "full", plantsMax: quota.plantsMax };
    const id = write.id ?? (await this.#nextId(garden));
    if (id === undefined) return { kind: "exhausted" };
    this.#add(write, id);
    return { kind: "created", id, replayed: false };
  }

  delete({ garden, id }: { readonly garden: string; readonly id: PlantId }): Outcome {
    const plant = pair(garden, id);
    if (!this.#exists.delete(plant)) return { kind: "missing" };
    this.#newPlants.delete(plant);
    this.#known.quota?.count(garden, -1);
    return { kind: "deleted" };
  }

  changes(): Omit<Decision, "outcomes"> {
    return {
      plants: [...this.#newPlants.values()],
      keys: [...this.#newKeys.values()],
      lastIds: this.#lastIds,
    };
  }

  #add({ garden, name, tag, idempotency, id: givenId }: CreateWrite, id: PlantId): void {
    this.#known.quota?.count(garden, 1);
    this.#exists.add(pair(garden, id));
    this.#newPlants.set(pair(garden, id), { garden, id, name, tag });
    const isCounted = givenId === undefined || id <= countedIdMax;
    if (isCounted && id > this.#lastId(garden)) this.#lastIds.set(garden, id);
    if (!idempotency) return;
    const { key, request, expiresAtMs } = idempotency;
    const kept = { garden, key, request, plantId: id, expiresAtMs };
    this.#keys.set(pair(garden, key), kept);
    this.#newKeys.set(pair(garden, key), kept);
  }

  #lastId(garden: string): PlantId {
    return this.#lastIds.get(garden) ?? this.#known.lastIds.get(garden) ?? 0n;
  }

  /** Absent when the garden has none left. Mostly, one is in the way only above what is counted. */
  async #nextId(garden: string): Promise<PlantId | undefined> {
    let id = this.#lastId(garden) + 1n;
    while ((this.#known.isUncounted || id > countedIdMax) && id <= assignedIdMax) {
      id = await this.#known.findFreeId(garden, id);
      if (!this.#exists.has(pair(garden, id))) break;
      id++;
    }
    return id <= assignedIdMax ? id : undefined;
  }
}
