/**
 * The rules of a write, for every engine: key, precondition, id taken, quota, next id, event.
 * Decides the writes of a group in order, from what an engine looks up, and returns what the engine
 * must store.
 */
import { KeyRow, type StoredKey } from "./idempotency.ts";
import {
  assignedIdMax,
  contentOf,
  hasOneOf,
  isSameContent,
  type Plant,
  type PlantContent,
  type PlantId,
  withId,
} from "./plant.ts";
import type {
  CreateWrite,
  DeleteWrite,
  EventType,
  GardenEvent,
  KeyUse,
  Outcome,
  PatchWrite,
  Preconditions,
  PutWrite,
  Write,
} from "./ports.ts";

/** A garden's row. */
export interface GardenRow {
  readonly lastId: PlantId;
  readonly plants: number;
  /** Rows of keys, with expired ones until they're forgotten. Plants of a bulk share rows. */
  readonly keys: number;
  readonly lastEvent: number;
}

/**
 * What is stored, as the group's transaction sees it. If a garden has no row, it's empty, and
 * nothing more may be looked up in it: without a row to lock, another instance may be adding
 * plants.
 */
export interface LookUp {
  garden(garden: string): GardenRow | undefined;
  plant(garden: string, id: PlantId): Plant | undefined;
  key(garden: string, rowKey: string): StoredKey | undefined;
}

/** What an engine must store in one garden, for all writes of the group together. */
export interface GardenChanges extends GardenRow {
  readonly garden: string;
  readonly inserted: readonly Plant[];
  readonly replaced: readonly Plant[];
  readonly deleted: readonly PlantId[];
  readonly keyRows: readonly KeyRow[];
  /** At least one: every change is an event. */
  readonly events: readonly GardenEvent[];
}

interface Decision {
  readonly outcomes: readonly Outcome[];
  /** Only gardens that change. */
  readonly changes: readonly GardenChanges[];
}

/** The most keys, and the most events, that a garden limited to `plantsMax` plants keeps. */
export function historyMaxOf(plantsMax: number): number {
  return Math.max(10 * plantsMax, 10_000);
}

/** `plantsMax` is the quota of a garden; unlimited if absent. */
export function decide(
  writes: readonly Write[],
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
  const changes = Array.from(gardens.values(), (garden) => garden.changes());
  return { outcomes, changes: changes.filter(({ events }) => events.length > 0) };
}

/** A plant that the group names or creates. */
interface PlantState {
  readonly wasStored: boolean;
  /** Absent if there is no such plant, or not any more. */
  plant: Plant | undefined;
  isChanged: boolean;
}

/** A garden while a group of writes is decided. */
class Garden {
  readonly #name: string;
  readonly #lookUp: LookUp;
  readonly #plantsMax: number | undefined;
  readonly #isStored: boolean;
  readonly #row: { -readonly [Name in keyof GardenRow]: GardenRow[Name] };
  readonly #events: GardenEvent[] = [];
  readonly #states = new Map<PlantId, PlantState>();
  readonly #keyRows = new Map<string, KeyRow>();

  constructor(name: string, lookUp: LookUp, plantsMax: number | undefined) {
    const row = lookUp.garden(name);
    this.#name = name;
    this.#lookUp = lookUp;
    this.#plantsMax = plantsMax;
    this.#isStored = row !== undefined;
    this.#row = { ...(row ?? { lastId: 0n, plants: 0, keys: 0, lastEvent: 0 }) };
  }

  decide(write: Write): Outcome {
    switch (write.kind) {
      case "create":
        return this.#create(write);
      case "put":
        return this.#put(write);
      case "patch":
        return this.#patch(write);
      case "delete":
        return this.#delete(write);
    }
  }

  changes(): GardenChanges {
    const inserted: Plant[] = [];
    const replaced: Plant[] = [];
    const deleted: PlantId[] = [];
    for (const [id, { wasStored, plant, isChanged }] of this.#states) {
      if (!isChanged) continue;
      if (plant) (wasStored ? replaced : inserted).push(plant);
      else if (wasStored) deleted.push(id);
    }
    const keyRows = [...this.#keyRows.values()].filter(({ isChanged }) => isChanged);
    const stored = { inserted, replaced, deleted, keyRows, events: this.#events };
    return { garden: this.#name, ...this.#row, ...stored };
  }

  #create(write: CreateWrite): Outcome {
    const { key } = write;
    const keyRow = key && this.#keyRow(key);
    const earlier = key && keyRow?.recall(key);
    if (earlier) return earlier;
    const chosen = write.id === undefined ? undefined : this.#stateOf(write.id);
    if (chosen?.plant) return { kind: "taken" };
    const full = this.#full(keyRow);
    if (full) return full;
    const id = write.id ?? this.#row.lastId + 1n;
    // No plant has an id between the counter and 2^52, so the next id is free.
    if (!chosen && id > assignedIdMax) return { kind: "exhausted" };
    this.#store(id, chosen ?? this.#addState(id, undefined), write, write);
    if (key && keyRow) {
      if (!keyRow.isStored) this.#row.keys++;
      keyRow.remember(key, id);
    }
    return { kind: "created", id, replayed: false };
  }

  #put(write: PutWrite): Outcome {
    const { id, preconditions } = write;
    const state = this.#stateOf(id);
    const found = state.plant;
    if (!holds(preconditions, found)) return { kind: "precondition-failed" };
    const full = found ? undefined : this.#full();
    if (full) return full;
    this.#store(id, state, write, write);
    return found ? { kind: "replaced" } : { kind: "created", id, replayed: false };
  }

  #patch(write: PatchWrite): Outcome {
    const { id, change, preconditions } = write;
    const state = this.#stateOf(id);
    if (!state.plant) return { kind: "missing" };
    if (!holds(preconditions, state.plant)) return { kind: "precondition-failed" };
    const content = contentOf({ ...state.plant, ...change });
    this.#store(id, state, write, content);
    return { kind: "patched", content };
  }

  #delete(write: DeleteWrite): Outcome {
    const { id, preconditions } = write;
    const state = this.#stateOf(id);
    // Before the precondition: RFC 9110 (13.2.1) ignores it where the response is a 404 anyway.
    if (!state.plant) return { kind: "missing" };
    if (!holds(preconditions, state.plant)) return { kind: "precondition-failed" };
    this.#note("deleted", write, state.plant);
    state.plant = undefined;
    state.isChanged = true;
    this.#row.plants--;
    return { kind: "deleted" };
  }

  #store(id: PlantId, state: PlantState, write: Write, content: PlantContent): void {
    const found = state.plant;
    // If the plant is like that already, nothing changes.
    if (found && isSameContent(found, content)) return;
    const plant = withId(id, content);
    this.#note(found ? "replaced" : "created", write, plant);
    if (!found) this.#row.plants++;
    state.plant = plant;
    state.isChanged = true;
    if (id > this.#row.lastId && id <= assignedIdMax) this.#row.lastId = id;
  }

  #note(type: EventType, { user, atMs }: Write, plant: Plant): void {
    this.#events.push({ seq: ++this.#row.lastEvent, type, atMs, user, plant });
  }

  #stateOf(id: PlantId): PlantState {
    const state = this.#states.get(id);
    if (state) return state;
    return this.#addState(id, this.#isStored ? this.#lookUp.plant(this.#name, id) : undefined);
  }

  #addState(id: PlantId, plant: Plant | undefined): PlantState {
    const state = { wasStored: plant !== undefined, plant, isChanged: false };
    this.#states.set(id, state);
    return state;
  }

  #keyRow(key: KeyUse): KeyRow {
    let found = this.#keyRows.get(key.rowKey);
    if (found === undefined) {
      const { rowKey, nowMs } = key;
      const stored = this.#isStored ? this.#lookUp.key(this.#name, rowKey) : undefined;
      found = new KeyRow(rowKey, stored, nowMs);
      this.#keyRows.set(rowKey, found);
    }
    return found;
  }

  /** Whether the quota leaves no room for one more plant, or for its key. */
  #full(keyRow?: KeyRow): Outcome | undefined {
    const plantsMax = this.#plantsMax;
    if (plantsMax === undefined) return undefined;
    if (this.#row.plants >= plantsMax) return { kind: "full", limit: "plants", max: plantsMax };
    const keysMax = historyMaxOf(plantsMax);
    const isFull = keyRow?.isStored === false && this.#row.keys >= keysMax;
    return isFull ? { kind: "full", limit: "keys", max: keysMax } : undefined;
  }
}

function holds(preconditions: Preconditions | undefined, found: PlantContent | undefined): boolean {
  const { ifMatch, ifNoneMatch } = preconditions ?? {};
  if (ifMatch !== undefined && !hasOneOf(ifMatch, found)) return false;
  return ifNoneMatch === undefined || !hasOneOf(ifNoneMatch, found);
}
