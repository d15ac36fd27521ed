/**
 * The open garden: the list on the page, how many plants and tags there are, and what happens to
 * them here and elsewhere.
 */
import { batch, computed, signal } from "@preact/signals";
import { renderCount } from "../src/shared/text.ts";
import {
  type Api,
  Conflict,
  isSame,
  makeIdempotencyKey,
  type Page,
  type Plant,
  type PlantEvent,
  pageSize,
  pageSizeMax,
  type Summary,
} from "./api.ts";
import { countAfter, type PlantChange } from "./counts.ts";
import { announce, type Message, message, notify, offerUndo, warn } from "./message.ts";
import { isSameQuery, type SortedQuery, sortedMax, toOrder } from "./order.ts";
import { PlantList, type View } from "./plant-list.ts";
import { countPlants, describeList, describePlants, isFiltered } from "./words.ts";

/** How often to count plants and tags while others change them, and while this page writes. */
const recountMs = 2_000;
const recountWritesMs = 100;

/** Where the page should go once it has drawn the list. */
interface Target {
  /** The top of the page. */
  readonly isTop?: boolean;
  /** A plant, or what is at its place. Without either, the focus goes to the title. */
  readonly id?: bigint | undefined;
  readonly index?: number;
  readonly isFocused?: boolean;
}

export class Garden {
  readonly summary = signal<Summary | undefined>();
  /** The list on the page. */
  readonly list = signal(new PlantList({}));
  /** What the address asks for: the query of that list, or of the next one. */
  readonly query = signal<SortedQuery>(this.list.value.query);
  readonly target = signal<Target | undefined>();
  /** Plants that changed or appeared a moment ago. */
  readonly fresh = signal<ReadonlySet<bigint>>(new Set());
  /** Until that's known, the page is drawn as for somebody who may. */
  readonly canWrite = computed(() => this.summary.value?.me.scope !== "read");
  /** Whether another list is on its way. */
  readonly isComing = computed(() => this.query.value !== this.list.value.query);
  readonly isEmpty = computed(() => {
    const { size, query, isComplete } = this.list.value;
    return isComplete && size === 0 && !isFiltered(query);
  });
  /** Whether the list can be sorted by name or tag. */
  readonly isSortable = computed(() => {
    const list = this.list.value;
    return (countPlants(list, this.summary.value) ?? list.size) <= sortedMax;
  });
  /** Which rows are in view. The page knows. */
  view: () => View = () => ({ first: 0, last: Number.POSITIVE_INFINITY });
  /** Called with the last event before the list was first loaded. */
  onOpened: (lastEvent: number | undefined) => void = () => {};
  /** Called with what this page has changed. */
  onChanged: (changes: readonly PlantChange[]) => void = () => {};

  #loading: AbortController | undefined;
  #countedAtMs = 0;
  /** Plants as they were before this page changed them, until their events arrive. */
  readonly #before = new Map<bigint, Plant>();
  /** The last event that the page has counted. */
  #followed = 0;
  #countTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly api: Api) {}

  get isLoading(): boolean {
    return this.#loading !== undefined;
  }

  /** Shows a list, unless it's on the page already. */
  show(query: SortedQuery): void {
    if (this.list.value.isLoaded && isSameQuery(query, this.query.value)) return;
    void this.#start(query);
  }

  /** Loads the list again: as much of it as fits a response. */
  async refresh(): Promise<void> {
    // A restored backup may have fewer events.
    this.#followed = 0;
    this.recount();
    await this.#start(this.query.value, pageSizeMax);
  }

  /** Loads the next page, unless another is loading or, without a retry, has failed. */
  async loadMore(isRetry = false): Promise<void> {
    const list = this.list.value;
    const hasFailed = list.error.value !== undefined && !isRetry;
    if (list.next === undefined || hasFailed || this.#loading) return;
    // A page of a search covers a part of the garden, and may find little in it.
    const read = (signal: AbortSignal) =>
      this.api.listPage(list.request, { after: list.next, limit: pageSize, signal });
    if ((await this.#load(list, read)) && list.size < pageSize) await this.loadMore();
  }

  /** Loads again what has failed to load, if anything. */
  retry(): void {
    const { isLoaded, error } = this.list.value;
    if (error.value === undefined) return;
    void (isLoaded ? this.loadMore(true) : this.refresh());
  }

  /** Loads the rest of the list and shows it at once, unless nobody wants it anymore. */
  async loadAll(isWanted: () => boolean): Promise<void> {
    const list = this.list.value;
    if (this.isComing.value || list.isComplete) return;
    await this.#load(list, async (signal) => {
      const plants: Plant[] = [];
      const part = { after: list.next, limit: pageSizeMax, signal };
      for await (const page of this.api.listPages(list.request, part)) {
        if (!isWanted()) return { plants: [], next: list.next };
        plants.push(...page);
      }
      return { plants, next: undefined };
    });
  }

  /** Starts a list. The old one stays on the page until the new one has its first plants. */
  async #start(query: SortedQuery, limit = pageSize): Promise<void> {
    const list = new PlantList(query);
    this.query.value = query;
    if (!this.list.value.isLoaded) this.list.value = list;
    // Without events, nothing else says that the numbers are old.
    if (this.summary.value && this.summary.value.me.lastEvent === undefined) this.recount();
    if (!(await this.#load(list, (signal) => this.#readFirst(list, limit, signal)))) return;
    const isRefresh = isSameQuery(query, this.list.value.query);
    const isReload = isRefresh && list !== this.list.value;
    if (isReload && list.error.value !== undefined) {
      this.query.value = this.list.value.query;
      return warn("The list couldn’t be refreshed.", list.error.value);
    }
    batch(() => {
      // The title says how many plants there are.
      if (!isRefresh) this.target.value = { isTop: true };
      this.list.value = list;
    });
    if (list.size < pageSize) void this.loadMore();
    // It's loaded again after something that has been announced.
    if (list.isLoaded && !isReload) announce(describeList(list, this.summary.value));
  }

  /** All plants, if the list is to be sorted and has few enough of them. Otherwise the first page. */
  async #readFirst(list: PlantList, limit: number, signal: AbortSignal): Promise<Page> {
    const { by } = toOrder(list.query);
    // By name unless somebody asks for it: if that takes one request.
    const max = list.query.sort === undefined ? pageSizeMax : sortedMax;
    const count = countPlants(list, this.summary.value) ?? 0;
    if (by === "id" || count > max) return this.api.listPage(list.request, { limit, signal });
    const part = { limit: pageSizeMax, signal };
    const first = await this.api.listPage(list.request, part);
    const plants = [...first.plants];
    let { next } = first;
    while (next !== undefined && plants.length < max) {
      const page = await this.api.listPage(list.request, { ...part, after: next });
      plants.push(...page.plants);
      next = page.next;
    }
    return { plants, next };
  }

  /** Loads plants into a list. Returns false if another request has taken over. */
  async #load(list: PlantList, read: (signal: AbortSignal) => Promise<Page>): Promise<boolean> {
    this.#loading?.abort();
    const loading = new AbortController();
    this.#loading = loading;
    list.error.value = undefined;
    try {
      if (!this.summary.value) {
        this.summary.value = await this.api.summarize();
        // Before the first list, so that the feed has whatever happens after it.
        this.onOpened(this.summary.value.me.lastEvent);
      }
      const isFirst = !list.isLoaded;
      const page = await read(loading.signal);
      batch(() => {
        list.addPage(page);
        if (isFirst && list.isComplete) list.sort();
      });
    } catch (error) {
      if (this.#loading === loading) list.error.value = error;
    }
    if (this.#loading !== loading) return false;
    this.#loading = undefined;
    return true;
  }

  /** Counts plants and tags again, together, unless that has just been done for what others did. */
  recount(isUrgent = true): void {
    clearTimeout(this.#countTimer);
    const waitMs = isUrgent ? 0 : this.#countedAtMs + recountMs - performance.now();
    this.#countTimer = setTimeout(
      async () => {
        const startedAtMs = performance.now();
        this.#countedAtMs = startedAtMs;
        const summary = await this.api.summarize().catch(() => undefined);
        if (this.#countedAtMs !== startedAtMs) return;
        // The page may have counted more by now, or be about to count what is in it already.
        const isCurrent = (summary?.me.lastEvent ?? this.#followed) >= this.#followed;
        if (summary && this.api.isSending) {
          this.#countTimer = setTimeout(() => this.recount(), recountWritesMs);
        } else if (summary && isCurrent) this.summary.value = summary;
        else this.recount(false);
      },
      Math.max(0, waitMs),
    );
  }

  // What others do.

  /** Shows what happened, without moving what is in view. */
  follow(events: readonly PlantEvent[]): void {
    batch(() => {
      this.#countEvents(events);
      this.fresh.value = new Set(this.list.value.follow(events, this.view()));
    });
    for (const { plant } of events) this.#before.delete(plant.id);
    if (events.length > 0) this.recount(false);
  }

  /** Counts what can be counted: what a plant was before is known only of those in the list. */
  #countEvents(events: readonly PlantEvent[]): void {
    const { me } = this.summary.value ?? {};
    const list = this.list.value;
    const known = new Map<bigint, Plant | undefined>();
    const changes: PlantChange[] = [];
    for (const { seq, type, plant } of events) {
      const listed = list.find(plant.id);
      const shown = listed?.goneBecause === "deleted" ? undefined : listed;
      const before = known.has(plant.id) ? known.get(plant.id) : shown;
      const after = type === "plant.deleted" ? undefined : plant;
      const isNew = type === "plant.created" || known.has(plant.id);
      known.set(plant.id, after);
      this.#followed = seq;
      const isCounted = seq <= (me?.lastEvent ?? 0);
      if (!isCounted && (before || isNew)) changes.push({ before, after });
    }
    this.#count(changes);
  }

  /** A plant as it was before events that the page doesn't show yet. */
  findBefore(id: bigint): Plant | undefined {
    const before = this.#before.get(id) ?? this.list.value.find(id);
    this.#before.delete(id);
    return before;
  }

  #count(changes: readonly PlantChange[]): void {
    const summary = this.summary.value;
    if (summary && changes.length > 0) this.summary.value = countAfter(summary, changes);
  }

  /** After scrolling, other rows are in view. */
  settle(): void {
    if (!this.#loading && !this.list.value.isSettled) this.follow([]);
  }

  /** Shows the new plants that wait. */
  showWaiting(): void {
    batch(() => {
      const ids = this.list.value.admit();
      this.fresh.value = new Set(ids);
      this.target.value = { id: ids[0], isFocused: true };
    });
  }

  // What happens here.

  /** Somebody opened a plant, and the list may have been out of date. Its row stays in view. */
  showRead(id: bigint, plant: Plant | undefined): void {
    const known = this.list.value.find(id);
    if (!known || (plant && isSame(plant, known))) return;
    const type = plant ? "plant.replaced" : "plant.deleted";
    this.list.value.follow([{ type, plant: toPlant(plant ?? known) }], this.view());
    this.recount();
  }

  showAdded(added: Plant): void {
    const plant = toPlant(added);
    this.#reveal([{ after: plant }], false);
    const isHidden = isFiltered(this.list.value.query) && !this.list.value.find(plant.id);
    const more = isHidden ? " It isn’t in this list." : "";
    const text = message`“${plant.name}” was added with the id ${[plant.id]}.${[more]}`;
    offerUndo(text, async () => {
      try {
        await this.api.deleteShown(plant);
      } catch (error) {
        if (!(error instanceof Conflict)) throw error;
        // It may have been deleted when this was tried before.
        if (error.theirs) return void notify(describeKept(plant));
      }
      this.#update([{ before: plant }]);
      return message`“${plant.name}” was deleted again.`;
    });
  }

  /** `before` is what the plant was before somebody saved it here. */
  showSaved(before: Plant, after: Plant, text: Message): void {
    const saved = toPlant(after);
    this.#reveal([{ before, after: saved }], true);
    offerUndo(text, async () => {
      try {
        const restored = await this.api.save(saved, toPlant(before));
        this.#reveal([{ before: saved, after: toPlant(restored) }], true);
      } catch (error) {
        if (error instanceof Conflict) return void notify(describeKept(saved));
        throw error;
      }
      return message`The change of “${before.name}” was undone.`;
    });
  }

  /** `unknown` plants may have been deleted, too. */
  showDeleted(plants: readonly Plant[], unknown: readonly Plant[] = []): void {
    const all = [...plants, ...unknown];
    if (all.length === 0) return;
    const [first] = plants;
    if (first) {
      batch(() => {
        const index = this.list.value.plants.findIndex(({ id }) => id === first.id);
        this.#update(plants.map((before) => ({ before })));
        this.target.value = { index: Math.max(0, index), isFocused: true };
      });
    }
    // Makes it safe to undo again after a lost response.
    const idempotencyKey = makeIdempotencyKey();
    const [was, is] = all.length === 1 ? ["was", "is"] : ["were", "are"];
    offerUndo(message`${describePlants(plants, unknown)} ${[was]} deleted.`, async () => {
      const results = await this.api.createMany(all, { idempotencyKey });
      const restored = all.filter((_, index) => results[index]?.status === 201);
      this.#reveal(
        restored.map((after) => ({ after })),
        true,
      );
      // One that wasn't deleted after all still has its id.
      const isThere = (index: number) => index >= plants.length && results[index]?.status === 409;
      const others = results.filter((_, index) => !isThere(index));
      const refusal = others.find((result) => result.status !== 201);
      if (!refusal) return message`${describePlants(all)} ${[is]} back.`;
      // There may be room later, so this can be undone again.
      if (refusal.status === 507) throw new Error(refusal.detail);
      const count = `${renderCount(restored.length)} of ${renderCount(all.length, "plant")}`;
      return void warn(`Restored ${count}.`, refusal.detail);
    });
  }

  /** Plants have got other tags. Somebody else may have changed their names since. */
  showTagged(changes: readonly { readonly before: Plant; readonly after: Plant }[]): void {
    const names = new Map(this.list.value.plants.map(({ id, name }) => [id, name]));
    this.#update(
      changes.map(({ before, after }) => ({
        before,
        after: { ...toPlant(after), name: names.get(after.id) ?? after.name },
      })),
    );
  }

  #reveal(changes: readonly PlantChange[], isFocused: boolean): void {
    const first = changes[0]?.after;
    batch(() => {
      this.#update(changes);
      if (!first || !this.list.value.find(first.id)) return;
      this.fresh.value = new Set([first.id]);
      this.target.value = { id: first.id, isFocused };
    });
  }

  #update(changes: readonly PlantChange[]): void {
    const plants = changes.flatMap(({ after }) => after ?? []);
    const gone = changes.flatMap(({ before, after }) => (after ? [] : (before ?? [])));
    const hasEvents = this.summary.value?.me.lastEvent !== undefined;
    for (const { before, after } of changes) {
      if (hasEvents && before && after) this.#before.set(before.id, before);
    }
    batch(() => {
      this.#count(changes);
      this.list.value.put(plants, gone);
      this.onChanged(changes);
    });
    this.recount();
  }
}

function toPlant({ id, name, tag }: Plant): Plant {
  return { id, name, tag };
}

function describeKept({ name }: Plant): Message {
  return message`Somebody else has changed or deleted “${name}”, so it stays as it is.`;
}
