/** Who did what in the garden, and when, newest first, as it happens. */
import { computed, signal } from "@preact/signals";
import { type Api, describeError, type Plant, type PlantEvent } from "./api.ts";
import { Task } from "./message.ts";

/** How many events are kept when new ones arrive. */
const keptMax = 30_000;
/** Changes further apart than this get separate lines. */
const togetherMs = 60_000;
/** How many more events one click reads at a time, and how often, to pass over an import. */
const passedAtOnce = 1_000;
const passesMax = 100;
const namesMax = 3;

/** A plant as it is now and as it was before, if the page knows. */
type Change = Pick<KnownEvent, "plant" | "before">;
interface KnownEvent extends PlantEvent {
  readonly before?: Plant | undefined;
}

/** What one user did in a row, such as an import. */
export interface ActivityLine extends Pick<PlantEvent, "user" | "type" | "at"> {
  /** The number of its first event. */
  readonly key: number;
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
  readonly lines = computed(() => toLines(this.#events.value, this.hasEarlier.value));

  constructor(readonly api: Pick<Api, "eventsBefore">) {}

  async toggle(isOpen: boolean): Promise<void> {
    if (isOpen === this.isOpen.value) return;
    this.isOpen.value = isOpen;
    this.#events.value = [];
    this.hasEarlier.value = true;
    if (isOpen) await this.showEarlier();
  }

  /** `plants` are the ones that the page had before these events. */
  add(events: readonly PlantEvent[], plants: readonly Plant[]): void {
    if (!this.isOpen.value) return;
    const known = new Map(plants.map((plant) => [plant.id, plant]));
    this.#merge(events.map((event) => ({ ...event, before: known.get(event.plant.id) })));
    if (this.#events.value.length <= keptMax) return;
    this.#events.value = this.#events.value.slice(0, keptMax);
    this.hasEarlier.value = true;
  }

  /** Loads more, and the whole of the last line, however long it is. */
  async showEarlier(): Promise<void> {
    const { length } = this.lines.value;
    const isDone = () => this.lines.value.length > length || !this.hasEarlier.value;
    await this.loading.run(async () => {
      try {
        await this.#load();
        for (let passes = 0; !isDone() && passes < passesMax; passes++) {
          await this.#load(passedAtOnce);
        }
        this.note.value = this.#events.value.length === 0 ? "Nothing has happened lately." : "";
      } catch (error) {
        this.note.value = describeError(error);
      }
    });
  }

  /** Loads what came before the earliest event, or the latest events. */
  async #load(limit?: number): Promise<void> {
    const events = await this.api.eventsBefore(this.#events.value.at(-1)?.seq, limit);
    this.#merge(events);
    this.hasEarlier.value = this.#events.value.at(-1)?.seq !== 1 && events.length > 0;
  }

  #merge(events: readonly KnownEvent[]): void {
    const bySeq = new Map([...events, ...this.#events.value].map((event) => [event.seq, event]));
    this.#events.value = [...bySeq.values()].sort((a, b) => b.seq - a.seq);
  }
}

function toLines(events: readonly KnownEvent[], hasEarlier: boolean): ActivityLine[] {
  const lines: (PlantEvent & { readonly changes: Map<bigint, Change> })[] = [];
  const known = new Map<bigint, Plant>();
  // From the oldest on, so that each event has the plant as the one before left it.
  for (const event of events.toReversed()) {
    const { type, plant } = event;
    const last = lines.at(-1);
    const changes = last && isTogether(last, event) ? last.changes : new Map<bigint, Change>();
    const first = last?.changes === changes ? lines.pop() : event;
    lines.push({ ...event, seq: first?.seq ?? event.seq, changes });
    // A plant that was changed twice has its newest name, and what it was before the first change.
    const { before } = changes.get(plant.id) ?? { before: known.get(plant.id) ?? event.before };
    changes.delete(plant.id);
    changes.set(plant.id, { plant, before: type === "plant.replaced" ? before : undefined });
    known.set(plant.id, plant);
  }
  return lines.toReversed().map(({ seq, user, type, at, changes }, index) => ({
    ...{ key: seq, user, type, at, count: changes.size },
    isCut: hasEarlier && index === lines.length - 1,
    plants: [...changes.values()].slice(-namesMax).reverse(),
  }));
}

function isTogether(a: PlantEvent, b: PlantEvent): boolean {
  const isNear = Date.parse(b.at) - Date.parse(a.at) < togetherMs;
  return a.user === b.user && a.type === b.type && isNear;
}
