/**
 * The rules of a write by themselves, without a database: what they decide is what the model of a
 * garden says, whatever is in a group.
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

/** Stores decisions as an engine does, and refuses what the tables of an engine would refuse. */
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
    const { garden, inserted, replaced, deleted, keyRows, lastId, lastEvent } = changes;
    const stored = this.gardens.get(garden) ?? newGarden();
    this.gardens.set(garden, stored);
    const { plants, keys, events } = stored;
    require("inserts new plants", !inserted.some(({ id }) => plants.has(id)));
    require("replaces plants that are there", replaced.every(({ id }) => plants.has(id)));
    require("deletes plants that are there", deleted.every((id) => plants.delete(id)));
    for (const plant of [...inserted, ...replaced]) plants.set(plant.id, plant);
    for (const { rowKey, entries, expiresAtMs } of keyRows) {
      keys.set(rowKey, { entries: Buffer.from(entries), expiresAtMs });
    }
    for (const event of changes.events) {
      require("numbers events without gaps", events.push(event) === event.seq);
    }
    stored.row = { lastId, lastEvent, plants: changes.plants, keys: changes.keys };
    require("counts plants", changes.plants === plants.size);
    require("counts keys", changes.keys === keys.size);
  }

  #stored(name: string): StoredGarden {
    const stored = this.gardens.get(name);
    require("looks nothing up in a garden without a row", stored !== undefined);
    return stored ?? newGarden();
  }
}

/** `expect` would take most of the time. */
function require(promise: string, isKept: boolean): void {
  if (!isKept) throw new Error(`Broken: it ${promise}.`);
}

function newGarden(): StoredGarden {
  const row = { lastId: 0n, plants: 0, keys: 0, lastEvent: 0 };
  return { row, plants: new Map(), keys: new Map(), events: [] };
}

const ascending = (a: Plant, b: Plant) => (a.id < b.id ? -1 : 1);

test.each(quotas)(
  "random groups come to what the model says, and leave its plants and events, %s",
  (_, plantsMax) => {
    const property = fc.property(groups, (sentGroups) => {
      const models = new ModelGardens(plantsMax);
      const store = new MemoryStore();
      for (const sent of sentGroups) {
        const writes = sent.map((each) => toWrite(each, each.garden));
        const { outcomes, changes } = decide(writes, store, plantsMax);
        for (const each of changes) store.store(each);
        const responses = outcomes.map((outcome, at) => toResponse(outcome, sent[at]));
        expect(responses.join("\n")).toBe(models.take(sent).join("\n"));
      }
      for (const [name, model] of models.describe()) {
        const { plants, events, row } = store.gardens.get(name) ?? newGarden();
        const listed = [...plants.values()].toSorted(ascending);
        expect(describeGarden(listed, events, row.lastEvent)).toBe(model);
      }
    });
    always(property, 200);
  },
);
