/**
 * The rules of a write, for every engine: key, precondition, id taken, quota, next id. Decides a
 * group of writes in their order, from what an engine looks up, and says what is to be stored. It
 * sends no statement.
 */
import { assignedIdMax, contentHash, type Plant, type PlantId } from "../domain/plant.ts";
import type {
  CreateWrite,
  DeleteWrite,
  Outcome,
  Preconditions,
  PutWrite,
  Write,
} from "../domain/storage.ts";
import { KeyRow, type KeyUse, type StoredKey, toKeyUse } from "./keys.ts";

/** A create whose key is hashed. */
type KeyedCreate = Omit<CreateWrite, "idempotency"> & { readonly key?: KeyUse | undefined };

export type PreparedWrite = KeyedCreate | PutWrite | DeleteWrite;

/** Call it on the thread of the request, which has time to hash. */
export function prepare(writes: readonly Write[]): PreparedWrite[] {
  return writes.map((write) => {
    if (write.kind !== "create") return write;
    const { kind, garden, id, name, tag } = write;
    return { kind, garden, id, name, tag, key: toKeyUse(write) };
  });
}

/** A garden's row. */
export interface GardenRow {
  readonly lastId: PlantId;
  readonly plants: number;
  readonly keys: number;
}

type Content = Pick<Plant, "name" | "tag">;

/**
 * What is stored, as the transaction of the group sees it. In a garden without a row nothing is
 * looked up: it holds nothing, and an engine may not have locked it.
 */
export interface LookUp {
  garden(garden: string): GardenRow | undefined;
  plant(garden: string, id: PlantId): Content | undefined;
  key(garden: string, row: string): StoredKey | undefined;
}

/** What is to be stored of one garden, once and for all writes of the group. */
export interface GardenChanges extends GardenRow {
  readonly garden: string;
  readonly inserted: readonly Plant[];
  readonly replaced: readonly Plant[];
  readonly deleted: readonly PlantId[];
  readonly keyRows: readonly KeyRow[];
}

export interface Decision {
  readonly outcomes: readonly Outcome[];
  /** Of the gardens that change. */
  readonly changes: readonly GardenChanges[];
}

/** The most keys a garden limited to `plantsMax` plants may hold. */
export function keysMaxOf(plantsMax: number): number {
  return Math.max(10 * plantsMax, 10_000);
}

/** `plantsMax` is the quota of a garden; unlimited if absent. */
export function decide(
  writes: readonly PreparedWrite[],
  lookUp: LookUp,
  plantsMax: number | undefined,
): Decision {
  const gardens = new Map<string, Garden>();
  const outcomes = writes.map((write) => {
    let garden = gardens.get(write.garden);
    if (garden === undefined) {
      garden = new Garden(write.garden, lookUp, plantsMax);
      gardens.set(write.garden, garden);
    }
    return garden.decide(write);
  });
  const changed = [...gardens.values()].filter(({ isChanged }) => isChanged);
  return { outcomes, changes: changed.map((garden) => garden.changes()) };
}

/** The place of a plant that the group names or creates. */
interface Place {
  readonly wasStored: boolean;
  /** Absent: there is no plant, or not any more. */
  content: Content | undefined;
  isChanged: boolean;
}

/** A garden while a group of writes is decided. */
class Garden {
  readonly #name: string;
  readonly #lookUp: LookUp;
  readonly #plantsMax: number | undefined;
  readonly #isStored: boolean;
  #lastId: PlantId;
  #plants: number;
  #keys: number;
  readonly #places = new Map<PlantId, Place>();
  readonly #keyRows = new Map<string, KeyRow>();
  isChanged = false;

  constructor(name: string, lookUp: LookUp, plantsMax: number | undefined) {
    const row = lookUp.garden(name);
    this.#name = name;
    this.#lookUp = lookUp;
    this.#plantsMax = plantsMax;
    this.#isStored = row !== undefined;
    this.#lastId = row?.lastId ?? 0n;
    this.#plants = row?.plants ?? 0;
    this.#keys = row?.keys ?? 0;
  }

  decide(write: PreparedWrite): Outcome {
    switch (write.kind) {
      case "create":
        return this.#create(write);
      case "put":
        return this.#put(write);
      case "delete":
        return this.#delete(write);
    }
  }

  changes(): GardenChanges {
    const inserted: Plant[] = [];
    const replaced: Plant[] = [];
    const deleted: PlantId[] = [];
    for (const [id, { wasStored, content, isChanged }] of this.#places) {
      if (!isChanged) continue;
      if (content) (wasStored ? replaced : inserted).push({ id, ...content });
      else if (wasStored) deleted.push(id);
    }
    const keyRows = [...this.#keyRows.values()].filter(({ isChanged }) => isChanged);
    const row = { lastId: this.#lastId, plants: this.#plants, keys: this.#keys };
    return { garden: this.#name, ...row, inserted, replaced, deleted, keyRows };
  }

  #create(write: KeyedCreate): Outcome {
    const { key } = write;
    const keyRow = key && this.#keyRow(key);
    const earlier = key && keyRow?.recall(key);
    if (earlier) return earlier;
    const chosen = write.id === undefined ? undefined : this.#place(write.id);
    if (chosen?.content) return { kind: "taken" };
    const full = this.#full(keyRow);
    if (full) return full;
    const id = write.id ?? this.#lastId + 1n;
    // No plant up to there has an id above the counter, so the next one is free.
    if (!chosen && id > assignedIdMax) return { kind: "exhausted" };
    this.#store(id, chosen ?? this.#addPlace(id, undefined), write);
    if (key && keyRow) {
      if (!keyRow.isStored) this.#keys++;
      keyRow.remember(key, id);
    }
    return { kind: "created", id, replayed: false };
  }

  #put(write: PutWrite): Outcome {
    const { id, preconditions } = write;
    const place = this.#place(id);
    const wasThere = place.content !== undefined;
    if (!holds(preconditions, place.content)) return { kind: "precondition-failed" };
    const full = wasThere ? undefined : this.#full();
    if (full) return full;
    this.#store(id, place, write);
    return wasThere ? { kind: "replaced" } : { kind: "created", id, replayed: false };
  }

  #delete({ id, preconditions }: DeleteWrite): Outcome {
    const place = this.#place(id);
    // First, as RFC 9110 (13.2.1) has it: without the precondition it would be a 404, too.
    if (!place.content) return { kind: "missing" };
    if (!holds(preconditions, place.content)) return { kind: "precondition-failed" };
    place.content = undefined;
    place.isChanged = true;
    this.#plants--;
    this.isChanged = true;
    return { kind: "deleted" };
  }

  #store(id: PlantId, place: Place, { name, tag }: Content): void {
    if (!place.content) this.#plants++;
    place.content = { name, tag };
    place.isChanged = true;
    if (id > this.#lastId && id <= assignedIdMax) this.#lastId = id;
    this.isChanged = true;
  }

  #place(id: PlantId): Place {
    const place = this.#places.get(id);
    if (place) return place;
    return this.#addPlace(id, this.#isStored ? this.#lookUp.plant(this.#name, id) : undefined);
  }

  #addPlace(id: PlantId, content: Content | undefined): Place {
    const place = { wasStored: content !== undefined, content, isChanged: false };
    this.#places.set(id, place);
    return place;
  }

  #keyRow(key: KeyUse): KeyRow {
    let found = this.#keyRows.get(key.row);
    if (found === undefined) {
      const { row, nowMs } = key;
      const stored = this.#isStored ? this.#lookUp.key(this.#name, row) : undefined;
      found = new KeyRow(row, stored, nowMs);
      this.#keyRows.set(row, found);
    }
    return found;
  }

  /** Whether the quota leaves no room for one more plant, or for its key. */
  #full(keyRow?: KeyRow): Outcome | undefined {
    const plantsMax = this.#plantsMax;
    if (plantsMax === undefined) return undefined;
    if (this.#plants >= plantsMax) return { kind: "full", limit: "plants", max: plantsMax };
    const keysMax = keysMaxOf(plantsMax);
    const isFull = keyRow?.isStored === false && this.#keys >= keysMax;
    return isFull ? { kind: "full", limit: "keys", max: keysMax } : undefined;
  }
}

function holds(preconditions: Preconditions | undefined, found: Content | undefined): boolean {
  const { ifMatch, ifNoneMatch } = preconditions ?? {};
  if (ifNoneMatch !== undefined && found) return false;
  if (ifMatch === undefined) return true;
  return found !== undefined && (ifMatch === "*" || ifMatch.includes(contentHash(found)));
}
