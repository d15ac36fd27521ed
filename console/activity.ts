/** Who did what in the garden, and when, newest first, as it happens. */
import { computed, signal } from "@preact/signals";
import { type Api, describeError, type Plant, type PlantEvent } from "./api.ts";
import { Task } from "./message.ts";
import { describeVerb } from "./words.ts";

/** How many events are kept when new ones arrive. */
const keptMax = 30_000;
/** Changes further apart than this get separate lines. */
const togetherMs = 60_000;
/** Lines that are shown before somebody asks for more. */
const firstLines = 12;
/** The first events that are read, and how many more at a time, to pass over an import. */
const firstEvents = 200;
const passedAtOnce = 1_000;
const passesMax = 100;
/** Lines of more plants than this don't say how many. */
export const countedMax = 5_000;
const namesMax = 3;

/** A plant as it is now and as it was before, if the page knows. */
interface Change extends Pick<KnownEvent, "plant" | "before"> {
  /** It was deleted then, or has been since. */
  readonly isGone?: boolean;
}
interface KnownEvent extends PlantEvent {
  readonly before?: Plant | undefined;
}

/** What one user did in a row, such as an import. */
export interface ActivityLine extends Pick<PlantEvent, "user" | "at"> {
  /** The number of its first event. */
  readonly key: number;
  /** What was done to all of them: `added`, `deleted`, `moved`, `renamed` or `changed`. */
  readonly verb: string;
  /** The tag that several plants were moved to, empty for none. */
  readonly movedTo: string | undefined;
  readonly count: number;
  /** Whether earlier events, which aren't loaded, may belong to it. */
  readonly isCut: boolean;
  /** The newest few. */
  readonly plants: readonly Change[];
}

export class Activity {
  /** Newest first. */
  readonly #events = signal<readonly KnownEvent[]>([]);
  /** Whether the service may have earlier ones. */
  readonly hasEarlier = signal(true);
  readonly isOpen = signal(false);
  readonly loading = new Task();
  readonly note = signal("");
  readonly #all = computed(() => toLines(this.#events.value, this.hasEarlier.value));
  /** Without a last one whose count isn't known yet, unless it's the only one or very long. */
  readonly lines = computed(() => {
    const lines = this.#all.value;
    const last = lines.at(-1);
    const isWhole = !last?.isCut || last.count > countedMax || lines.length === 1;
    return isWhole ? lines : lines.slice(0, -1);
  });

  /** Ends when what is loading has come. */
  #running: Promise<void> = Promise.resolve();
  /** How often it was closed: what was asked for before that comes too late. */
  #closings = 0;

  constructor(readonly api: Pick<Api, "eventsBefore">) {}

  async open(): Promise<void> {
    if (this.isOpen.value) return;
    this.isOpen.value = true;
    const isDone = () => {
      const isCounted = (this.#all.value.at(-1)?.count ?? 0) > countedMax;
      return this.lines.value.length >= firstLines || isCounted;
    };
    await this.#running;
    if (this.isOpen.value) await this.#loadUntil(isDone);
  }

  close(): void {
    this.#closings++;
    this.isOpen.value = false;
    this.#events.value = [];
    this.hasEarlier.value = true;
  }

  /** After events were missed. */
  async reload(): Promise<void> {
    if (!this.isOpen.value) return;
    this.close();
    await this.open();
  }

  /** `findBefore` finds a plant as it was before these events. */
  add(events: readonly PlantEvent[], findBefore: (id: bigint) => Plant | undefined): void {
    if (!this.isOpen.value) return;
    this.#merge(events.map((event) => ({ ...event, before: findBefore(event.plant.id) })));
    this.note.value = "";
    if (this.#events.value.length <= keptMax) return;
    this.#events.value = this.#events.value.slice(0, keptMax);
    this.hasEarlier.value = true;
  }

  /** Loads at least one more line, however long it is. */
  async showEarlier(): Promise<void> {
    const { length } = this.lines.value;
    await this.#loadUntil(() => this.lines.value.length > length);
  }

  async #loadUntil(isDone: () => boolean): Promise<void> {
    if (this.loading.isRunning.value) return;
    this.#running = this.loading.run(async () => {
      const closings = this.#closings;
      try {
        await this.#load(firstEvents);
        for (let passes = 0; !isDone() && passes < passesMax; passes++) {
          if (!this.hasEarlier.value || closings !== this.#closings) break;
          await this.#load(passedAtOnce);
        }
        if (closings !== this.#closings) return;
        this.note.value = this.#events.value.length === 0 ? "Nothing has happened lately." : "";
      } catch (error) {
        this.note.value = describeError(error);
      }
    });
    await this.#running;
  }

  /** Loads what came before the earliest event, or the latest events. */
  async #load(limit: number): Promise<void> {
    const closings = this.#closings;
    const events = await this.api.eventsBefore(this.#events.value.at(-1)?.seq, limit);
    if (closings !== this.#closings) return;
    this.#merge(events);
    this.hasEarlier.value = this.#events.value.at(-1)?.seq !== 1 && events.length > 0;
  }

  #merge(events: readonly KnownEvent[]): void {
    const bySeq = new Map([...events, ...this.#events.value].map((event) => [event.seq, event]));
    this.#events.value = [...bySeq.values()].sort((a, b) => b.seq - a.seq);
  }
}

/** What one user did to plants in a row. */
interface Group {
  readonly first: PlantEvent;
  last: PlantEvent;
  /** By id, in the order of the events. */
  readonly changes: Map<bigint, Change>;
}

function toLines(events: readonly KnownEvent[], hasEarlier: boolean): ActivityLine[] {
  const groups: Group[] = [];
  const known = new Map<bigint, Plant>();
  // From the oldest on, so that each event has the plant as the one before left it.
  for (const event of events.toReversed()) {
    const { plant } = event;
    let group = groups.at(-1);
    // Whatever happens to a plant again, such as an undo, has a line of its own.
    if (!group || group.changes.has(plant.id) || !isTogether(group.last, event)) {
      group = { first: event, last: event, changes: new Map() };
      groups.push(group);
    }
    group.last = event;
    group.changes.set(plant.id, { plant, before: known.get(plant.id) ?? event.before });
    known.set(plant.id, plant);
  }
  const gone = new Set<bigint>();
  for (const { type, plant } of events.toReversed()) {
    if (type === "plant.deleted") gone.add(plant.id);
    else gone.delete(plant.id);
  }
  const lines = groups.map((group, index) => toLine(group, hasEarlier && index === 0, gone));
  return lines.reverse();
}

function isTogether(a: PlantEvent, b: PlantEvent): boolean {
  const isNear = Date.parse(b.at) - Date.parse(a.at) < togetherMs;
  return a.user === b.user && a.type === b.type && isNear;
}

const verbs = { "plant.created": "added", "plant.deleted": "deleted" };

function toLine(
  { first, last, changes: byId }: Group,
  isCut: boolean,
  gone: ReadonlySet<bigint>,
): ActivityLine {
  const { user, at, type } = last;
  const changes = [...byId.values()];
  const isChange = type === "plant.replaced";
  const verb = isChange ? findVerb(changes) : verbs[type];
  const tags = new Set(changes.map(({ plant }) => plant.tag));
  const isOneMove = verb === "moved" && changes.length > 1 && tags.size === 1;
  const newest = changes.slice(-namesMax).reverse();
  const plants = newest.map(({ plant, before }) => ({
    plant,
    ...(isChange && { before }),
    isGone: gone.has(plant.id),
  }));
  return {
    key: first.seq,
    user,
    at,
    verb,
    movedTo: isOneMove ? last.plant.tag : undefined,
    count: changes.length,
    isCut,
    plants,
  };
}

/** `changed`, unless it's known of every plant that the same was done to it. */
function findVerb(changes: readonly Change[]): string {
  const found = new Set(
    changes.map(({ before, plant }) => (before ? describeVerb(before, plant) : "changed")),
  );
  const [verb = "changed"] = found;
  return found.size === 1 ? verb : "changed";
}
