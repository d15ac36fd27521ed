/**
 * Follows what happens in the garden while the page is visible: one stream, which goes on where it
 * was left. A hidden page has none, because a browser allows few connections to a service.
 */
import { type Api, type Host, type Me, type PlantEvent, toRefusal } from "./api.ts";

/** Events that come together are shown together. */
const gatherMs = 100;
const retryMs = 5_000;

export interface FeedEvents extends Host {
  /** In their order. */
  readonly onEvents: (events: readonly PlantEvent[]) => void;
  /** Whether they have to wait: the page is about to learn from a response what they say. */
  readonly isBusy: () => boolean;
  /** Something was missed: what the page shows may be out of date. */
  readonly onMissed: () => void;
}

export class Feed {
  readonly #page: FeedEvents;
  #api: Api | undefined;
  /** The last event that is known; absent until the service has told it. */
  #position: number | undefined;
  #running = new AbortController();
  #gathered: PlantEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(page: FeedEvents) {
    this.#page = page;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#running.abort();
      else this.#run();
    });
  }

  /** Once this resolves, the feed has all that happens after a list that is read from now on. */
  async open(api: Api, known: Me | undefined): Promise<void> {
    this.#api = api;
    const me = known ?? (await api.me().catch(() => undefined));
    if (api !== this.#api) return;
    this.#position = me?.lastEvent;
    this.#run();
  }

  close(): void {
    this.#running.abort();
    this.#api = undefined;
    this.#gathered = [];
    clearTimeout(this.#timer);
  }

  #run(): void {
    this.#running.abort();
    this.#running = new AbortController();
    if (this.#api && !document.hidden) void this.#follow(this.#api, this.#running.signal);
  }

  /** Until the signal is aborted, or the service says that it keeps no events. */
  async #follow(api: Api, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#position === undefined) {
          const { lastEvent } = await api.me();
          if (signal.aborted || lastEvent === undefined) return;
          this.#position = lastEvent;
          this.#gathered = [];
          this.#page.onMissed();
        }
        for await (const event of api.events(this.#position, signal)) {
          this.#position = event.seq;
          this.#gathered.push(event);
          this.#timer ??= setTimeout(() => this.#report(), gatherMs);
        }
      } catch (error) {
        if (signal.aborted || this.#page.onError(error)) return;
        const code = toRefusal(error)?.code;
        if (code === "not-found") return;
        if (code === "gone") this.#position = undefined;
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
