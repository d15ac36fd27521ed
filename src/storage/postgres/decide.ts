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
  type Write,
} from "../../domain/storage.ts";

/** What the database keeps of an idempotency key. Hashes are hexadecimal here. */
export interface StoredKey {
  readonly garden: string;
  readonly keyHash: string;
  readonly requestHash: string;
  readonly plantId: PlantId;
  readonly expiresAtMs: number;
}

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
  readonly keys: readonly StoredKey[];
  readonly limits: GardenLimits | undefined;
}

export interface Decision {
  readonly outcomes: readonly Outcome[];
  readonly plants: readonly NewPlant[];
  readonly keys: readonly StoredKey[];
  readonly gardens: ReadonlyMap<string, GardenState>;
}

/** One text for a garden and a name in it. No name of a garden holds the character between them. */
export function pair(garden: string, rest: string | PlantId): string {
  return `${garden}\0${rest}`;
}

export function hashOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
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
  readonly #keys: Map<string, StoredKey>;
  readonly #newPlants = new Map<string, NewPlant>();
  readonly #newKeys = new Map<string, StoredKey>();

  constructor(known: Known) {
    this.#limits = known.limits;
    this.#gardens = new Map(known.gardens);
    this.#exists = new Set(known.plants.map(({ garden, id }) => pair(garden, id)));
    this.#keys = new Map(known.keys.map((key) => [pair(key.garden, key.keyHash), key]));
  }

  create(write: CreateWrite): Outcome {
    const { garden, idempotency } = write;
    const key = idempotency && { ...idempotency, hash: hashOf(idempotency.key) };
    const stored = key && this.#keys.get(pair(garden, key.hash));
    if (stored && stored.expiresAtMs > key.nowMs) {
      if (stored.requestHash !== hashOf(key.request)) return { kind: "mismatch" };
      return { kind: "created", id: stored.plantId, replayed: true };
    }
    if (write.id !== undefined && this.#exists.has(pair(garden, write.id))) {
      return { kind: "taken" };
    }
    const isNewKey = key !== undefined && stored === undefined;
    const full = this.#full(garden, "plants") ?? (isNewKey && this.#full(garden, "keys"));
    if (full) return full;
    const id = write.id ?? this.#nextId(garden);
    if (id === undefined) return { kind: "exhausted" };
    this.#add(write, id);
    if (isNewKey) this.#count(garden, "keys", 1);
    if (key) {
      const { hash: keyHash, request, expiresAtMs } = key;
      const entry = { garden, keyHash, requestHash: hashOf(request), plantId: id, expiresAtMs };
      this.#keys.set(pair(garden, keyHash), entry);
      this.#newKeys.set(pair(garden, keyHash), entry);
    }
    return { kind: "created", id, replayed: false };
  }

  delete({ garden, id }: DeleteWrite): Outcome {
    const plant = pair(garden, id);
    if (!this.#exists.delete(plant)) return { kind: "missing" };
    this.#newPlants.delete(plant);
    this.#count(garden, "plants", -1);
    return { kind: "deleted" };
  }

  changes(): Omit<Decision, "outcomes"> {
    return {
      plants: [...this.#newPlants.values()],
      keys: [...this.#newKeys.values()],
      gardens: this.#gardens,
    };
  }

  #add({ garden, name, tag, id: givenId }: CreateWrite, id: PlantId): void {
    this.#exists.add(pair(garden, id));
    this.#newPlants.set(pair(garden, id), { garden, id, name, tag });
    this.#count(garden, "plants", 1);
    const { lastId } = this.#state(garden);
    const isCounted = id > lastId && (givenId === undefined || id <= countedIdMax);
    // Also where the counter stays: the garden's row must not keep an older count of its plants.
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
