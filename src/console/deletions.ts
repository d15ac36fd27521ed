/**
 * Deletions that can still be undone. Nothing is sent until the time is up, so undoing one leaves
 * the plant and its id untouched, and closing the page deletes nothing.
 */

import { renderCount } from "../plant-file/words.ts";
import type { Plant } from "./api.ts";
import { announce, find, message, show } from "./elements.ts";

const undoMs = 6_000;

export interface DeletionEvents {
  /** Deletes the plant and reports the outcome; false if the plant may still exist. */
  readonly send: (plant: Plant) => Promise<boolean>;
  /** Puts plants back into the list. */
  readonly restore: (plants: readonly Plant[]) => void;
}

export class Deletions {
  readonly #events: DeletionEvents;
  readonly #box = find("undo");
  #waiting: Plant[] = [];
  /** Ids of plants that are waiting or being deleted. */
  readonly #pending = new Set<bigint>();
  /** Resolves to the plants that may still exist, once everything begun was sent. */
  #sending: Promise<Plant[]> | undefined;
  #dropping = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(events: DeletionEvents) {
    this.#events = events;
    find("undo-button").addEventListener("click", () => this.undo());
  }

  get pendingIds(): ReadonlySet<bigint> {
    return this.#pending;
  }

  start(plant: Plant): void {
    this.#waiting.push(plant);
    this.#pending.add(plant.id);
    const more = this.#waiting.length - 1;
    const text = find("undo-text");
    text.replaceChildren(
      message`Deleting “${this.#waiting[0]?.name ?? ""}”`,
      `${more === 0 ? "" : ` and ${more} more`} in ${undoMs / 1_000} seconds. `,
      "Closing the page cancels it.",
    );
    announce(text.textContent);
    show(this.#box, true);
    this.#startClock();
  }

  undo(): void {
    if (this.#waiting.length === 0) return;
    const plants = this.#takeWaiting();
    for (const { id } of plants) this.#pending.delete(id);
    this.#events.restore(plants);
    announce(`${renderCount(plants.length, "plant")} kept.`);
  }

  /** Sends what is waiting now. Resolves to the plants that may still exist. */
  finish(): Promise<Plant[]> {
    const sending = this.#send(this.#takeWaiting(), this.#sending);
    this.#sending = sending;
    void sending.then(() => {
      if (this.#sending === sending) this.#sending = undefined;
    });
    return sending;
  }

  /** Drops everything that isn't under way. */
  forget(): void {
    this.#takeWaiting();
    this.#pending.clear();
    this.#sending = undefined;
    this.#dropping.abort();
    this.#dropping = new AbortController();
  }

  async #send(plants: readonly Plant[], before?: Promise<Plant[]>): Promise<Plant[]> {
    // After signing out, the same ids may be plants of the next person.
    const { signal } = this.#dropping;
    const left = [...((await before) ?? [])];
    for (const plant of plants) {
      if (signal.aborted || !(await this.#events.send(plant))) left.push(plant);
      if (!signal.aborted) this.#pending.delete(plant.id);
    }
    return left;
  }

  #takeWaiting(): Plant[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#stopClock();
    show(this.#box, false);
    return waiting;
  }

  #startClock(): void {
    this.#stopClock();
    this.#box.classList.add("ticking");
    this.#timer = setTimeout(() => {
      // The clock starts over for anyone reading the message or reaching for the button.
      if (this.#box.matches(":hover, :focus-within")) this.#startClock();
      else void this.finish();
    }, undoMs);
  }

  #stopClock(): void {
    clearTimeout(this.#timer);
    this.#box.classList.remove("ticking");
    // Reading a size restarts the style sheet's animation.
    void this.#box.offsetWidth;
  }
}
