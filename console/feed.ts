/**
 * Follows what happens in the garden through one stream, which continues where it stopped. A hidden
 * page closes its stream, because browsers allow few connections to a service.
 */
import { type Api, hasCode, type PlantEvent } from "./api.ts";

/** Events that arrive together are shown together. */
const gatherMs = 100;
const retryMs = 5_000;

interface FeedPage {
  /** In order, including this page's own changes, which the list already shows. */
  readonly onEvents: (events: readonly PlantEvent[]) => void;
  /** True while the response to one of our own writes or list requests may still be on its way. */
  readonly isBusy: () => boolean;
  /** Events were missed: the page may be out of date. */
  readonly onMissed: () => void;
}

export class Feed {
  /** The last event the page knows of. Absent if the service keeps no events. */
  #position: number | undefined;
  #isHidden = false;
  #running = new AbortController();
  #gathered: PlantEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly api: Pick<Api, "events" | "me">,
    readonly page: FeedPage,
  ) {}

  /** Follows what happens after this event. */
  start(position: number | undefined): void {
    this.#position = position;
    this.setHidden(this.#isHidden);
  }

  setHidden(isHidden: boolean): void {
    this.#isHidden = isHidden;
    this.#running.abort();
    this.#running = new AbortController();
    if (this.#position !== undefined && !isHidden) void this.#follow(this.#running.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const event of this.api.events({ after: this.#position, signal })) {
          this.#position = event.seq;
          this.#gathered.push(event);
          this.#timer ??= setTimeout(() => this.#report(), gatherMs);
        }
      } catch (error) {
        // The service no longer keeps events.
        if (signal.aborted || hasCode(error, "not-found")) return;
        const me = hasCode(error, "gone") && (await this.api.me({ signal }).catch(() => undefined));
        if (signal.aborted) return;
        if (me) {
          this.#position = me.lastEvent;
          this.#gathered = [];
          this.page.onMissed();
        } else await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
  }

  #report(): void {
    this.#timer = undefined;
    if (this.page.isBusy()) this.#timer = setTimeout(() => this.#report(), gatherMs);
    else if (this.#gathered.length > 0) this.page.onEvents(this.#gathered.splice(0));
  }
}
