/**
 * Takes back what an import did: deletes the plants that it added, and changes others back. What
 * somebody has changed since stays as it is.
 */
import type { Change } from "../client/files/comparison.ts";
import { Deleter } from "../client/files/deleter.ts";
import { findPlants } from "../client/files/found-plants.ts";
import type { ValidRow } from "../client/files/rows.ts";
import { Stop } from "../client/files/stop.ts";
import { Updater } from "../client/files/updater.ts";
import type { PlantField, StoredPlant } from "../client/plant-store.ts";
import { renderCount } from "../src/shared/text.ts";
import { type Api, isSame, type Plant } from "./api.ts";

export class ImportUndo {
  readonly #added: Plant[] = [];
  /** What changes the plants back. */
  readonly #changes: Change[] = [];
  readonly #changedBack = new Set<bigint>();
  #deleter: Deleter | undefined;
  /** Added plants that somebody has changed since. */
  #kept = 0;

  constructor(readonly api: Api) {}

  /** The import added this plant. */
  readonly onAdded = (plant: Plant): void => {
    this.#added.push(plant);
  };

  /** The import changed this plant. */
  readonly onChanged = (change: Change, after: Plant): void => {
    this.#changes.push(reverse(change, after));
  };

  /** Undoes all of it, or the rest if it has failed before. Returns what it did. */
  async run(updater: Updater): Promise<string> {
    if (!this.#deleter) {
      // What its last request added has to be known first.
      await updater.importer.settle();
      this.#deleter = new Deleter(this.api, await this.#findOwn());
    }
    await this.#deleter.run();
    const changedSince = await this.#changeBack(updater.unknown);
    return this.#describe(this.#deleter.deleted, changedSince);
  }

  /** The ids of the plants that are still as the import added them. */
  async #findOwn(): Promise<bigint[]> {
    const there = await findPlants(
      this.api,
      this.#added.map(({ id }) => id),
    );
    const others = this.#added.filter((plant) => {
      const now = there.get(plant.id);
      return now && !isSame(now, plant);
    });
    this.#kept = others.length;
    const kept = new Set(others);
    return this.#added.filter((plant) => !kept.has(plant)).map(({ id }) => id);
  }

  /** Returns how many of the changed plants somebody has changed or deleted since. */
  async #changeBack(unknown: Iterable<Change>): Promise<number> {
    const changes = [...this.#changes];
    for (const change of unknown) {
      changes.push(reverse(change, { ...change.before, ...change.set }));
    }
    const updater = new Updater(
      this.api,
      { added: [], changes, unchanged: 0 },
      { stop: new Stop(), onChanged: ({ before }) => this.#changedBack.add(before.id) },
    );
    await updater.send();
    return updater.refused.length;
  }

  #describe(deleted: number, changedSince: number): string {
    const steps = [
      deleted > 0 && `${renderCount(deleted, "plant")} deleted`,
      this.#changedBack.size > 0 && `${renderCount(this.#changedBack.size, "plant")} changed back`,
    ].filter((step) => step !== false);
    const kept = this.#kept + changedSince;
    const did = steps.length === 0 ? "nothing was left to take back" : steps.join(", ");
    const text = `The import was undone: ${did}.`;
    if (kept === 0) return text;
    const were = kept === 1 ? "was" : "were";
    return `${text} ${renderCount(kept, "plant")} that somebody has changed or deleted since ${were} left alone.`;
  }
}

/** The change that makes of what is there `after` it what was there before. */
function reverse({ row: { draft: _, ...line }, before, set }: Change, after: Plant): Change {
  const fields = Object.keys(set) as PlantField[];
  const old = Object.fromEntries(fields.map((field) => [field, before[field]]));
  const row: ValidRow<Partial<StoredPlant>> = { ...line, draft: old };
  const { id, name, tag } = after;
  return { row, before: { id, name, tag }, set: old, isDoubtful: false };
}
