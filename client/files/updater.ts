/**
 * Makes a garden's plants as a file has them, by what a comparison has found: sends the changes, each
 * only if its plant still is what was compared, and then adds what is new.
 *
 *     read the plant ──▶ as it was listed? ──▶ change it, if its ETag still is the one that was read
 *
 * Whatever ends an update, it knows how many plants it changed, or the least and the most.
 */
import { contentFields, isSameContent } from "../../src/domain/plant.ts";
import { renderBounds, renderCount, renderDuration } from "../../src/shared/text.ts";
import {
  makeIdempotencyKey,
  type Plant,
  type PlantStore,
  type StoredPlant,
} from "../plant-store.ts";
import { hasCode, isRefused } from "../problem-error.ts";
import { type Change, type Comparison, renderWanted } from "./comparison.ts";
import { Importer } from "./importer.ts";
import { renderPlant } from "./renderer.ts";
import type { RefusedRow } from "./rows.ts";
import type { Stop } from "./stop.ts";

/** What to do, as a comparison has found it, or less than that. */
type UpdatePlan = Pick<Comparison, "added" | "changes" | "unchanged">;

interface UpdateOptions {
  readonly stop: Stop;
  /** Called for each plant that this update changed. */
  readonly onChanged?: (change: Change, after: StoredPlant) => void;
  /** Called for each plant that it added. */
  readonly onAdded?: (plant: Plant) => void;
}

/** Changes that are under way at the same time. */
const changesMax = 32;
/** A proxy that rewrites ETags would make it try for ever. */
const triesMax = 3;

export class Updater {
  /** Plants that this update changed, at least. */
  changed = 0;
  /** Whether everything was sent. */
  isDone = false;
  /** Adds what is new. */
  readonly importer: Importer;
  /** Somebody else has made the same change meanwhile. */
  #unchanged = 0;
  /** Rows whose plants somebody else has changed or deleted meanwhile. */
  readonly #refused: RefusedRow[] = [];
  /** Changes that were sent, and may have been carried out. */
  readonly unknown = new Set<Change>();
  #hasFailed = false;
  readonly #store: PlantStore;
  readonly #plan: UpdatePlan;
  readonly #options: UpdateOptions;

  constructor(store: PlantStore, plan: UpdatePlan, options: UpdateOptions) {
    this.#store = store;
    this.#plan = plan;
    this.#options = options;
    // A new key: the comparison says what is here already, and a deleted plant may come back.
    this.importer = new Importer(store, { ...options, key: makeIdempotencyKey() });
  }

  /** Plants that this update changed, at most. More than `changed` if an outcome is unknown. */
  get changedMax(): number {
    return this.changed + this.unknown.size;
  }

  /** Rows whose plants are as the file has them, without this update. */
  get unchanged(): number {
    return this.#plan.unchanged + this.#unchanged + this.importer.alreadyThere;
  }

  /** Rows that were refused since the comparison. */
  get refused(): readonly RefusedRow[] {
    return [...this.#refused, ...this.importer.refused];
  }

  /** How many rows that the comparison sends have a result by now. */
  get done(): number {
    return this.changed + this.#unchanged + this.#refused.length + this.importer.done;
  }

  /** Throws the first failure that isn't about a single row, once what is under way has ended. */
  async send(): Promise<void> {
    const left = this.#plan.changes.values();
    const workers = Array.from({ length: changesMax }, () => this.#sendNext(left));
    for (const result of await Promise.allSettled(workers)) {
      if (result.status === "rejected") throw result.reason;
    }
    await this.importer.send(this.#plan.added);
    this.isDone = true;
  }

  async #sendNext(left: Iterator<Change>): Promise<void> {
    for (let next = left.next(); !next.done && !this.#hasFailed; next = left.next()) {
      try {
        await this.#send(next.value);
      } catch (error) {
        this.#hasFailed = true;
        throw error;
      }
    }
  }

  async #send(change: Change): Promise<void> {
    const { before } = change;
    const { asked } = this.#options.stop;
    for (let tries = 1; ; tries++) {
      asked.throwIfAborted();
      const plant = await this.#store.find(before.id, { signal: asked });
      if (!plant) return this.#refuse(change, "was deleted meanwhile");
      if (isSameContent(plant, before)) {
        if (await this.#isChanged(change, plant, tries === triesMax)) return;
      } else if (isAsWanted(plant, change)) {
        this.#unchanged++;
        return;
      } else {
        const now = renderPlant(plant);
        const wanted = renderWanted(change);
        return this.#refuse(change, `was changed meanwhile to ${now}; the file has ${wanted}`);
      }
    }
  }

  /** False if the plant has changed, or gone, since it was read. Then it has to be read again. */
  async #isChanged(change: Change, { etag }: StoredPlant, isLast: boolean): Promise<boolean> {
    const { stop, onChanged } = this.#options;
    this.unknown.add(change);
    try {
      const calls = { ifMatch: etag, signal: stop.over };
      const after = await this.#store.update(change.before.id, change.set, calls);
      this.unknown.delete(change);
      this.changed++;
      onChanged?.(change, after);
      return true;
    } catch (error) {
      if (isRefused(error)) this.unknown.delete(change);
      const isStale = hasCode(error, "precondition-failed") || hasCode(error, "not-found");
      if (isStale && !isLast) return false;
      throw error;
    }
  }

  #refuse({ row: { draft, ...line }, before }: Change, reason: string): void {
    this.#refused.push({ ...line, error: `plant ${before.id} ${reason}` });
  }
}

/** Whether each field that the file has is as the change would make it. */
function isAsWanted(plant: Plant, { row, before, set }: Change): boolean {
  return contentFields.every(
    (field) => row.draft[field] === undefined || plant[field] === (set[field] ?? before[field]),
  );
}

/** What an update did, in a sentence or more. */
export function describeUpdate(updater: Updater, elapsedMs: number): string {
  const { changed, changedMax, unchanged, refused, importer } = updater;
  const { stored, storedMax } = importer;
  const steps = [
    changedMax > 0 && `changed ${renderBounds(changed, changedMax, "plant")}`,
    storedMax > 0 && `added ${renderBounds(stored, storedMax, "plant")}`,
  ];
  const did = steps.filter((step) => step !== false).join(" and ");
  const parts =
    did === ""
      ? ["Nothing was changed or added."]
      : [`${did[0]?.toUpperCase()}${did.slice(1)} in ${renderDuration(elapsedMs)}.`];
  if (changedMax > changed || storedMax > stored) {
    parts.push("The outcome of the last requests is unknown.");
  }
  const say = (count: number, was: string, were: string) => {
    if (count > 0) parts.push(`${renderCount(count, "row")} ${count === 1 ? was : were}.`);
  };
  say(unchanged, "is as it was", "are as they were");
  say(
    importer.notCompared,
    "was not compared with what is there",
    "were not compared with what is there",
  );
  say(refused.length, "was refused", "were refused");
  return parts.join(" ");
}
