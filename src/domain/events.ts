/** What happened in a garden: reads its events without gaps, or says that it can't. */
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import type { EventPage, EventReader } from "./ports.ts";

/** In characters of names and tags. Bounds what a page takes in memory. */
const pageCharactersMax = 32 * 1024;

export class Events {
  constructor(
    private readonly reader: EventReader,
    private readonly isOn: boolean,
  ) {}

  /**
   * The events after `after` (from the oldest on, if absent). Ends before the first gap: events
   * that happen while `events` is off are numbered, but not stored. Fails with `gone` if it can't
   * go on from there, and with `not-found` if events are off.
   */
  async read(
    { garden }: Pick<Caller, "garden">,
    after: number | undefined,
    count: number,
    charactersMax = pageCharactersMax,
  ): Promise<EventPage> {
    if (!this.isOn) throw new PlantStoreError("not-found", eventsOff);
    const page = await this.reader.readEvents(garden, after, count, charactersMax);
    const { events, lastEvent } = page;
    const first = events[0]?.seq ?? lastEvent + 1;
    if (after !== undefined && first !== after + 1) throw gone;
    const gapAt = events.findIndex(({ seq }, index) => seq !== first + index);
    return { events: gapAt < 0 ? events : events.slice(0, gapAt), lastEvent };
  }

  /** See `EventReader.findNewEvents`. */
  findNew(lastEvents: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> {
    return this.reader.findNewEvents(lastEvents);
  }

  /** The number of the garden's last event, 0 before the first; absent if events are off. */
  async last({ garden }: Caller): Promise<number | undefined> {
    if (!this.isOn) return undefined;
    const found = await this.findNew(new Map([[garden, 0]]));
    return found.get(garden) ?? 0;
  }
}

const eventsOff = "This service keeps no events: its setting events (PLANTSTORE_EVENTS) is off.";

const gone = new PlantStoreError(
  "gone",
  "The events after this one are no longer kept, or never happened. List the plants again, and go " +
    "on from the lastEvent that /me showed before.",
);
