/**
 * Deletions that can still be undone. Nothing is sent before the time is up, so to undo one means
 * that it never happened: the plant keeps its id. It follows that a page that is closed deletes
 * nothing.
 */
import type { Plant } from "./api.ts";
import { count, find, message, show } from "./elements.ts";
import { announce } from "./notices.ts";

const undoMs = 6_000;

export interface DeletionEvents {
  /** Deletes the plant for good, and says what came of it; false if it may be there still. */
  readonly send: (plant: Plant) => Promise<boolean>;
  /** Puts plants back into the list. */
  readonly restore: (plants: readonly Plant[]) => void;
}

export class Deletions {
  readonly #events: DeletionEvents;
  readonly #box = find("undo");
  #waiting: Plant[] = [];
  /** The plants that may be there still, once all that was begun is sent. */
  #sending: Promise<Plant[]> | undefined;
  #dropping = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** What the message has of the pointer and the focus. */
  readonly #held = new Set<"pointer" | "focus">();

  constructor(events: DeletionEvents) {
    this.#events = events;
    find("undo-button").addEventListener("click", () => this.undo());
    // Whoever is reading or reaching for the button has all the time they need.
    for (const [hold, begin, end] of [
      ["pointer", "pointerenter", "pointerleave"],
      ["focus", "focusin", "focusout"],
    ] as const) {
      this.#box.addEventListener(begin, () => {
        this.#held.add(hold);
        this.#stopClock();
      });
      this.#box.addEventListener(end, () => {
        this.#held.delete(hold);
        this.#startClock();
      });
    }
  }

  start(plant: Plant): void {
    this.#waiting.push(plant);
    const [first] = this.#waiting;
    const more = this.#waiting.length - 1;
    const text = find("undo-text");
    text.replaceChildren(
      message`“${first?.name ?? ""}”`,
      `${more === 0 ? "" : ` and ${more} more`} will be deleted in ${undoMs / 1_000} seconds. `,
      "Undo keeps the id; closing the page keeps the plant.",
    );
    announce(text.textContent);
    show(this.#box, true);
    this.#startClock();
  }

  undo(): void {
    if (this.#waiting.length === 0) return;
    const plants = this.#take();
    this.#events.restore(plants);
    announce(`${count(plants.length, "plant")} kept.`);
  }

  /**
   * Sends what waits, now, behind what is being sent; answers the plants that may be there still.
   */
  finish(): Promise<Plant[]> {
    const sending = this.#send(this.#take(), this.#sending);
    this.#sending = sending;
    void sending.then(() => {
      if (this.#sending === sending) this.#sending = undefined;
    });
    return sending;
  }

  /** Drops what waits, and what is being sent but its first: those plants stay in the garden. */
  forget(): void {
    this.#take();
    this.#sending = undefined;
    this.#dropping.abort();
    this.#dropping = new AbortController();
  }

  async #send(plants: readonly Plant[], before?: Promise<Plant[]>): Promise<Plant[]> {
    // Whoever signs in later has another garden, where these ids are other plants.
    const { signal } = this.#dropping;
    const left = [...((await before) ?? [])];
    for (const plant of plants) {
      if (signal.aborted || !(await this.#events.send(plant))) left.push(plant);
    }
    return left;
  }

  #take(): Plant[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    // Of what is hidden, neither need be told to have left it.
    this.#held.clear();
    this.#stopClock();
    show(this.#box, false);
    return waiting;
  }

  #startClock(): void {
    this.#stopClock();
    if (this.#waiting.length === 0 || this.#held.size > 0) return;
    this.#box.classList.add("ticking");
    this.#timer = setTimeout(() => void this.finish(), undoMs);
  }

  #stopClock(): void {
    clearTimeout(this.#timer);
    this.#box.classList.remove("ticking");
    // Asking for a size lets the style sheet's clock begin anew.
    void this.#box.offsetWidth;
  }
}
