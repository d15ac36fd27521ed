/**
 * Decides the outcomes of a batch of writes in their order, and what to store, from what the
 * database held once their gardens were locked. It sends no statement.
 */
import { assignedIdMax, type PlantId } from "../../domain/plant.ts";
import {
  type CreateWrite,
  countedIdMax,
  type DeleteWrite,
  type Outcome,
  type PutWrite,
  type Write,
} from "../../domain/storage.ts";
import { isKeyed, type KeyRow, KeyRows } from "../key-rows.ts";

export interface NewPlant {
  readonly garden: string;
  readonly id: PlantId;
  readonly name: string;
  readonly tag: string;
}

/** How many rows of a kind a garden may hold. */
export type GardenLimits = Readonly<Record<"plants" | "keys", number>>;

export interface GardenState {
  readonly lastId: PlantId;
  /** Absent: nobody has counted, because nothing is limited or the garden only loses plants. */
  readonly plants: number | undefined;
  readonly keys: number | undefined;
}

/** What the outcomes depend on. */
export interface Known {
  readonly gardens: ReadonlyMap<string, GardenState>;
  /** Plants that exist: those the batch names by id, and those in the way of ids to assign. */
  readonly plants: readonly { readonly garden: string; readonly id: PlantId }[];
  readonly keys: readonly KeyRow[];
  readonly limits: GardenLimits | undefined;
}

export interface Decision {
  readonly outcomes: readonly Outcome[];
  readonly plants: readonly NewPlant[];
  readonly keys: readonly KeyRow[];
  readonly gardens: ReadonlyMap<string, GardenState>;
}

/** One text for a garden and a name in it. No name of a garden holds the character between them. */
export function pair(garden: string, rest: Buffer | PlantId): string {
  return `${garden}\0${typeof rest === "bigint" ? rest : rest.toString("hex")}`;
}

export function decide(writes: readonly Write[], known: Known): Decision {
  const batch = new Batch(known);
  const outcomes = writes.map((write) =>
    write.kind === "create" ? batch.create(write) : batch.delete(write),
  );
  return { outcomes, ...batch.changes() };
}

class Batch {
  readonly #limits: GardenLimits | undefined;
  readonly #gardens: Map<string, GardenState>;
  readonly #exists: Set<string>;
  readonly #keys: KeyRows;
  readonly #newPlants = new Map<string, NewPlant>();

  constructor(known: Known) {
    this.#limits = known.limits;
    this.#gardens = new Map(known.gardens);
    this.#exists = new Set(known.plants.map(({ garden, id }) => pair(garden, id)));
    const rows = new Map(known.keys.map((row) => [pair(row.garden, row.keyHash), row]));
    this.#keys = new KeyRows((garden, keyHash) => rows.get(pair(garden, keyHash)));
  }

  create(write: CreateWrite): Outcome {
    const { garden } = write;
    const keyed = isKeyed(write) ? write : undefined;
    const earlier = keyed && this.#keys.recall(keyed);
    if (earlier) return earlier;
    if (write.id !== undefined && this.#exists.has(pair(garden, write.id))) {
      return { kind: "taken" };
    }
    const isNewKey = keyed !== undefined && this.#keys.needsRow(keyed);
    const full = this.#full(garden, "plants") ?? (isNewKey && this.#full(garden, "keys"));
    if (full) return full;
    const id = write.id ?? this.#nextId(garden);
    if (id === undefined) return { kind: "exhausted" };
    this.#add(write, id);
    if (isNewKey) this.#count(garden, "keys", 1);
    if (keyed) this.#keys.remember(keyed, id);
    return { kind: "created", id, replayed: false };
  }

  delete({ kind, garden, id }: DeleteWrite | PutWrite): Outcome {
    if (kind === "put") throw new Error("Not implemented.");
    const plant = pair(garden, id);
    if (!this.#exists.delete(plant)) return { kind: "missing" };
    this.#newPlants.delete(plant);
    this.#count(garden, "plants", -1);
    return { kind: "deleted" };
  }

  changes(): Omit<Decision, "outcomes"> {
    return {
      plants: [...this.#newPlants.values()],
      keys: this.#keys.changed(),
      gardens: this.#gardens,
    };
  }

  #add({ garden, name, tag, id: givenId }: CreateWrite, id: PlantId): void {
    this.#exists.add(pair(garden, id));
    this.#newPlants.set(pair(garden, id), { garden, id, name, tag });
    this.#count(garden, "plants", 1);
    const { lastId } = this.#state(garden);
    const isCounted = id > lastId && (givenId === undefined || id <= countedIdMax);
    // Even if `lastId` stays: it marks the garden as changed, so that its counts are written.
    this.#change(garden, { lastId: isCounted ? id : lastId });
  }

  #full(garden: string, limit: keyof GardenLimits): Outcome | undefined {
    const max = this.#limits?.[limit];
    const isFull = max !== undefined && (this.#state(garden)[limit] ?? 0) >= max;
    return isFull ? { kind: "full", limit, max } : undefined;
  }

  #count(garden: string, limit: keyof GardenLimits, change: number): void {
    const held = this.#gardens.get(garden)?.[limit];
    if (held !== undefined) this.#change(garden, { [limit]: held + change });
  }

  #change(garden: string, change: Partial<GardenState>): void {
    this.#gardens.set(garden, { ...this.#state(garden), ...change });
  }

  #state(garden: string): GardenState {
    return this.#gardens.get(garden) ?? { lastId: 0n, plants: undefined, keys: undefined };
  }

  /** Absent when the garden has none left. An id that nobody has looked for counts as free. */
  #nextId(garden: string): PlantId | undefined {
    for (let id = this.#state(garden).lastId + 1n; id <= assignedIdMax; id++) {
      if (!this.#exists.has(pair(garden, id))) return id;
    }
    return undefined;
  }
}
