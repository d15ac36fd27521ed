/**
 * The rules of writes, without a database: for random groups they decide what the model of a garden
 * predicts.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { always } from "../../testing/property.ts";
import {
  describeGarden,
  groups,
  ModelGardens,
  quotas,
  toResponse,
  toWrite,
} from "../../testing/random-writes.ts";
import type { StoredKey } from "./idempotency.ts";
import type { Plant, PlantId } from "./plant.ts";
import type { GardenEvent } from "./ports.ts";
import { decide, type GardenChanges, type GardenRow, type LookUp } from "./rules.ts";

/** A garden as an engine stores it. */
interface StoredGarden {
  row: GardenRow;
  readonly plants: Map<PlantId, Plant>;
  readonly keys: Map<string, StoredKey>;
  readonly events: GardenEvent[];
}

/** Stores decisions as an engine does, and fails where the tables of an engine would. */
class MemoryStore implements LookUp {
  readonly gardens = new Map<string, StoredGarden>();

  garden(name: string): GardenRow | undefined {
    return this.gardens.get(name)?.row;
  }

  plant(name: string, id: PlantId): Plant | undefined {
    return this.#stored(name).plants.get(id);
  }

  key(name: string, rowKey: string): StoredKey | undefined {
    return this.#stored(name).keys.get(rowKey);
  }

  store(changes: GardenChanges): void {
    const { garden, inserted, replaced, deleted, lastId, lastEvent } = changes;
    const stored = this.gardens.get(garden) ?? newGarden();
    this.gardens.set(garden, stored);
    const { plants, keys, events } = stored;

    require("inserts new plants", !inserted.some(({ id }) => plants.has(id)));
    require("replaces plants that exist", replaced.every(({ id }) => plants.has(id)));
    for (const id of deleted) require("deletes plants that exist, once", plants.delete(id));
    for (const plant of inserted) plants.set(plant.id, plant);
    for (const plant of replaced) plants.set(plant.id, plant);

    for (const { rowKey, entries, expiresAtMs } of changes.keyRows) {
      keys.set(rowKey, { entries: Buffer.from(entries), expiresAtMs });
    }

    for (const event of changes.events) {
      events.push(event);
      require("numbers events without gaps", event.seq === events.length);
    }

    stored.row = { lastId, lastEvent, plants: changes.plants, keys: changes.keys };
    require("counts plants", changes.plants === plants.size);
    require("counts keys", changes.keys === keys.size);
  }

  #stored(name: string): StoredGarden {
    const stored = this.gardens.get(name);
    require("looks up plants and keys only in gardens with a row", stored !== undefined);
    return stored ?? newGarden();
  }
}

/** Fails unless `decide` keeps this promise. `expect` would take most of the test's time. */
function require(promise: string, isKept: boolean): void {
  if (!isKept) throw new Error(`A promise is broken: decide ${promise}.`);
}

function newGarden(): StoredGarden {
  const row = { lastId: 0n, plants: 0, keys: 0, lastEvent: 0 };
  return { row, plants: new Map(), keys: new Map(), events: [] };
}

test.each(quotas)(
  "random groups have the outcomes, plants and events that the model predicts, %s",
  (_quota, plantsMax) => {
    const property = fc.property(groups, (sentGroups) => {
      const models = new ModelGardens(plantsMax);
      const store = new MemoryStore();

      for (const sent of sentGroups) {
        const writes = sent.map((each) => toWrite(each, each.garden));
        const { outcomes, changes } = decide(writes, store, plantsMax);
        for (const change of changes) store.store(change);
        const responses = outcomes.map((outcome, index) => toResponse(outcome, sent[index]));
        expect(responses.join("\n")).toBe(models.take(sent).join("\n"));
      }

      for (const [name, expected] of models.describe()) {
        const { plants, events, row } = store.gardens.get(name) ?? newGarden();
        const listed = [...plants.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
        expect(describeGarden(listed, events, row.lastEvent)).toBe(expected);
      }
    });
    always(property, 200);
  },
);
