/**
 * Follows what happens in the garden through one stream, which continues where it stopped. A hidden
 * page closes its stream, because browsers allow few connections to a service.
 */
import { hasCode } from "../client/problem-error.ts";
import type { PlantEvent } from "./api.ts";
import { api } from "./session.ts";

/** Events that arrive together are shown together. */
const gatherMs = 100;
const retryMs = 5_000;

interface FeedEvents {
  /** In order, including this page's own changes, which the list already shows. */
  readonly onEvents: (events: readonly PlantEvent[]) => void;
  /** True while the response to one of our own writes or list requests may still be on its way. */
  readonly isBusy: () => boolean;
  /** Events were missed: the page may be out of date. */
  readonly onMissed: () => void;
}

export class Feed {
  readonly #page: FeedEvents;
  /** The last event the page knows of. Absent if the service keeps no events. */
  #position: number | undefined;
  #running = new AbortController();
  #gathered: PlantEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(page: FeedEvents) {
    this.#page = page;
    document.addEventListener("visibilitychange", () => this.#run());
  }

  /** Follows what happens after this event. */
  start(position: number | undefined): void {
    this.#position = position;
    this.#run();
  }

  #run(): void {
    this.#running.abort();
    this.#running = new AbortController();
    if (this.#position !== undefined && !document.hidden) void this.#follow(this.#running.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let hasMissed = false;
    while (!signal.aborted) {
      try {
        if (hasMissed) {
          this.#position = (await api.me()).lastEvent;
          this.#gathered = [];
          this.#page.onMissed();
          hasMissed = false;
        }
        for await (const event of api.events({ after: this.#position, signal })) {
          this.#position = event.seq;
          this.#gathered.push(event);
          this.#timer ??= setTimeout(() => this.#report(), gatherMs);
        }
      } catch (error) {
        // The service no longer keeps events.
        if (signal.aborted || hasCode(error, "not-found")) return;
        if (hasCode(error, "gone")) hasMissed = true;
        else await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
  }

  #report(): void {
    this.#timer = undefined;
    if (this.#page.isBusy()) this.#timer = setTimeout(() => this.#report(), gatherMs);
    else this.#page.onEvents(this.#gathered.splice(0));
  }
}
