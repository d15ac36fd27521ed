/**
 * Decides the outcomes of a batch of writes in their order, from what the database held once their
 * gardens were locked, and what to store. It sends no statement.
 */
import { assignedIdMax, type PlantId } from "../../domain/plant.ts";
import type { CreateWrite, DeleteWrite, Outcome, Write } from "../../domain/storage.ts";
import { countedIdMax } from "../../domain/storage.ts";

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

/** Free ids: from `first` up to, but without, `nextTaken`; absent: all that come after. */
export interface Gap {
  readonly first: PlantId;
  readonly nextTaken: PlantId | undefined;
}

/** What the outcomes depend on. */
export interface Known {
  readonly gardens: ReadonlyMap<string, GardenState>;
  /** Of the plants that the batch names by id, those that exist. */
  readonly plants: readonly { readonly garden: string; readonly id: PlantId }[];
  readonly keys: readonly StoredKey[];
  readonly limits: GardenLimits | undefined;
  /** Of gardens where ids that nobody counted may be in the way; absent of all others. */
  readonly gaps: ReadonlyMap<string, readonly Gap[]>;
}

export interface Decision {
  readonly outcomes: readonly Outcome[];
  readonly plants: readonly NewPlant[];
  readonly keys: readonly StoredKey[];
  readonly gardens: ReadonlyMap<string, GardenState>;
  /** Gardens that need more free ids than the gaps which are known have. */
  readonly short: ReadonlySet<string>;
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
  readonly #known: Known;
  readonly #gardens: Map<string, GardenState>;
  readonly #exists: Set<string>;
  readonly #keys: Map<string, StoredKey>;
  readonly #newPlants = new Map<string, NewPlant>();
  readonly #newKeys = new Map<string, StoredKey>();
  readonly #short = new Set<string>();

  constructor(known: Known) {
    this.#known = known;
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
      short: this.#short,
    };
  }

  #add({ garden, name, tag, id: givenId }: CreateWrite, id: PlantId): void {
    this.#exists.add(pair(garden, id));
    this.#newPlants.set(pair(garden, id), { garden, id, name, tag });
    this.#count(garden, "plants", 1);
    const { lastId } = this.#state(garden);
    const isCounted = id > lastId && (givenId === undefined || id <= countedIdMax);
    this.#change(garden, { lastId: isCounted ? id : lastId });
  }

  #full(garden: string, limit: keyof GardenLimits): Outcome | undefined {
    const max = this.#known.limits?.[limit];
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

  /** Absent when the garden has none left. */
  #nextId(garden: string): PlantId | undefined {
    const from = this.#state(garden).lastId + 1n;
    const gaps = this.#known.gaps.get(garden) ?? [{ first: from, nextTaken: undefined }];
    for (const { first, nextTaken = assignedIdMax + 1n } of gaps) {
      for (let id = first > from ? first : from; id < nextTaken && id <= assignedIdMax; id++) {
        if (!this.#exists.has(pair(garden, id))) return id;
      }
    }
    this.#short.add(garden);
    return undefined;
  }
}
