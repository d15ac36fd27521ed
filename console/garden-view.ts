/**
 * The page of a garden. The address says what to show; this loads it, draws it, and keeps it up to
 * date with what happens here and elsewhere.
 */
import { renderCount } from "../client/files/renderer.ts";
import { Activity } from "./activity.ts";
import { AddForm } from "./add-form.ts";
import { Address, type Place } from "./address.ts";
import {
  describeError,
  isSame,
  type Plant,
  type PlantEvent,
  pageSize,
  pageSizeMax,
  type Query,
  type Summary,
} from "./api.ts";
import { Deletions } from "./deletions.ts";
import {
  announce,
  find,
  hideNotice,
  listenForShortcuts,
  message,
  notify,
  show,
} from "./elements.ts";
import { Feed } from "./feed.ts";
import { drawWords, isFiltered } from "./garden-words.ts";
import { ListView } from "./list-view.ts";
import { PlantCard } from "./plant-card.ts";
import { PlantList } from "./plant-list.ts";
import { Selection } from "./selection.ts";
import { api } from "./session.ts";
import { TagsView } from "./tags-view.ts";
import { Transfers } from "./transfers.ts";

/** How close to the window the end of the list gets before the next page loads. */
const loadAheadPixels = 1_600;
/** How long somebody who types pauses before the service searches. */
const typingMs = 200;
/** How often to count plants and tags while others change them. */
const recountMs = 2_000;

export class GardenView {
  readonly #title = find("garden-title");
  readonly #filter = find<HTMLInputElement>("filter");
  readonly #address = new Address((place) => this.#showPlace(place));
  readonly #card = new PlantCard({
    onRead: (id, plant) => this.#showRead(id, plant),
    onSaved: (plant, isMerged) => this.#showSaved(plant, isMerged),
    onDeleted: (plant) => this.#showDeleted([plant]),
    onMove: (plant) => this.#address.go({ plant }),
    onClosed: (id) => {
      // The row that opened the card may have been redrawn or removed.
      if (!this.#listView.focus(this.#listView.indexOf(id))) this.#title.focus();
    },
  });
  readonly #selection = new Selection({
    list: () => this.#list,
    loadAll: () => this.#loadAll(),
    onChange: () => this.#draw(),
    onDeleted: (plants) => this.#showDeleted(plants),
    onStale: () => void this.#refresh(),
  });
  readonly #listView = new ListView(this.#selection, {
    onOpen: ({ id }) => this.#address.go({ plant: id }),
    onDelete: (plant) => this.#canWrite && void this.#card.delete(plant),
    onLeave: () => this.#filter.focus(),
  });
  readonly #tags = new TagsView((tag) => this.#address.go({ tag }));
  readonly #deletions = new Deletions((plants) => this.#showRestored(plants));
  readonly #add = new AddForm((plant) => this.#showAdded(plant));
  readonly #activity = new Activity(({ id, name }) => this.#address.link(name, id));
  readonly #feed = new Feed({
    onEvents: (events) => this.#showEvents(events),
    isBusy: () => api.isWriting || this.#loading !== undefined,
    onMissed: () => {
      this.#activity.close();
      void this.#refresh();
    },
  });
  // Under load several entries arrive together; the last one is current.
  readonly #end = new IntersectionObserver(
    (entries) => entries.at(-1)?.isIntersecting && this.#loadMore(),
    {
      rootMargin: `${loadAheadPixels}px`,
    },
  );

  #summary: Summary | undefined;
  #recounts = 0;
  #recountTimer: ReturnType<typeof setTimeout> | undefined;
  #typingTimer: ReturnType<typeof setTimeout> | undefined;
  /** The list on the page. */
  #list = new PlantList({});
  /** What the address asks for: the query of that list, or of the next one. */
  #query: Query = this.#list.query;
  /** Stops the request for a page. Absent if there is none. */
  #loading: AbortController | undefined;

  constructor() {
    new Transfers({ query: () => this.#list.query, onChanged: () => void this.#refresh() });
    this.#filter.addEventListener("input", () => {
      clearTimeout(this.#typingTimer);
      this.#typingTimer = setTimeout(() => this.#search(), typingMs);
    });
    this.#filter.addEventListener("keydown", (event) => this.#pressInFilter(event));
    this.#title.addEventListener("keydown", (event) => this.#enterList(event));
    const refresh = () => {
      hideNotice();
      void this.#refresh();
    };
    const onClick = (id: string, act: () => void) => find(id).addEventListener("click", act);
    onClick("refresh", refresh);
    onClick("newest", () => this.#address.go({ order: this.#query.order ? undefined : "desc" }));
    onClick("clear-filter", () => this.#showAll());
    onClick("first-add", () => this.#add.open());
    onClick("news", () => this.#showWaiting());
    onClick("notice-close", hideNotice);
    onClick("retry", () => {
      void this.#refresh();
      this.#title.focus({ preventScroll: true });
    });
    onClick("load-more", () => {
      this.#list.loadError = undefined;
      void this.#loadMore();
      this.#title.focus({ preventScroll: true });
    });
    addEventListener("scrollend", () => this.#settle());
    listenForShortcuts({
      "/": () => this.#filter.focus(),
      n: () => this.#canWrite && this.#add.open(),
      x: () => this.#canWrite && this.#selection.toggle(),
      r: refresh,
      z: () => void this.#deletions.undo(),
    });
    this.#title.focus();
    this.#showPlace(this.#address.place);
  }

  get #canWrite(): boolean {
    return this.#summary?.me.scope === "write";
  }

  // What to show.

  /** Shows what the address says. */
  #showPlace({ plant, ...query }: Place): void {
    if (plant === undefined) this.#card.close();
    else if (plant !== this.#card.id) {
      void this.#card.open(
        plant,
        this.#list.plants.find(({ id }) => id === plant),
      );
    }
    if (toQ(this.#filter.value) !== query.q) this.#filter.value = query.q ?? "";
    if (!this.#list.isLoaded || !isSameQuery(query, this.#query)) void this.#start(query);
  }

  #search(): void {
    clearTimeout(this.#typingTimer);
    const q = toQ(this.#filter.value);
    if (q === this.#query.q) return;
    // Back ends a search as a whole, not letter by letter.
    if (q !== undefined && this.#query.q !== undefined) this.#address.replace({ q });
    else this.#address.go({ q });
  }

  #pressInFilter(event: KeyboardEvent): void {
    if (event.key === "Enter") this.#search();
    if (event.key === "Escape") {
      if (this.#filter.value !== "" || isFiltered(this.#query)) this.#showAll();
      else this.#filter.blur();
    }
    this.#enterList(event);
  }

  #enterList(event: KeyboardEvent): void {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    this.#listView.focusFirst();
  }

  #showAll(): void {
    this.#filter.value = "";
    clearTimeout(this.#typingTimer);
    this.#address.go({ tag: undefined, q: undefined });
    this.#filter.focus();
  }

  // Loading it.

  /** Starts a list. The old one stays on the page until the new one has its first plants. */
  async #start(query: Query, limit = pageSize): Promise<void> {
    const list = new PlantList(query);
    this.#query = query;
    if (!this.#list.isLoaded) this.#list = list;
    if (!(await this.#load(list, limit))) return;
    const isRefresh = isSameQuery(query, this.#list.query);
    if (isRefresh && list.loadError !== undefined && list !== this.#list) {
      this.#query = this.#list.query;
      const why = describeError(list.loadError);
      notify(message`The list couldn’t be refreshed. ${why}`, "trouble");
    } else {
      if (!isRefresh) {
        this.#selection.clear();
        // The title says how many plants there are.
        scrollTo({ top: 0, behavior: "instant" });
      }
      this.#list = list;
    }
    this.#draw();
    if (list.isLoaded) {
      announce(`${this.#title.textContent} ${find("garden-note").textContent}`);
    }
    this.#loadMoreIfFew();
  }

  /** Loads a page into a list. Returns false if another request has taken over. */
  async #load(list: PlantList, limit = pageSize): Promise<boolean> {
    this.#loading?.abort();
    const loading = new AbortController();
    this.#loading = loading;
    list.loadError = undefined;
    this.#draw();
    try {
      if (!this.#summary) {
        this.#summary = await api.summarize();
        // Before the first list, so that the feed has whatever happens after it.
        this.#feed.start(this.#summary.me.lastEvent);
      }
      list.addPage(await api.listPage(list.query, list.next, limit, loading.signal));
    } catch (error) {
      if (this.#loading === loading) list.loadError = error;
    }
    if (this.#loading !== loading) return false;
    this.#loading = undefined;
    return true;
  }

  /** Loads everything again that was loaded. */
  async #refresh(): Promise<void> {
    const limit = Math.max(this.#list.size, pageSize);
    await Promise.all([this.#start(this.#query, limit), this.#recount()]);
  }

  /** Loads the next page, if there is one and nothing else is loading. */
  async #loadMore(): Promise<void> {
    const { next, loadError } = this.#list;
    if (next === undefined || loadError !== undefined || this.#loading) return;
    if (!(await this.#load(this.#list))) return;
    this.#draw();
    this.#loadMoreIfFew();
  }

  /** A page of a search covers a part of the garden, and may find little in it. */
  #loadMoreIfFew(): void {
    if (this.#list.size < pageSize) void this.#loadMore();
  }

  /** Loads the rest of the list, unless somebody stops selecting or goes elsewhere. */
  async #loadAll(): Promise<void> {
    const list = this.#list;
    if (this.#query !== list.query) return;
    list.loadError = undefined;
    while (this.#selection.isOn && list.next !== undefined && list.loadError === undefined) {
      if (!(await this.#load(list, pageSizeMax))) return;
    }
  }

  /** Counts plants and tags again. */
  async #recount(): Promise<void> {
    const number = ++this.#recounts;
    // If it fails, the numbers stay. The next request shows what is wrong.
    const summary = await api.summarize().catch(() => undefined);
    if (!summary || number !== this.#recounts) return;
    this.#summary = summary;
    this.#draw();
  }

  #recountSoon(): void {
    this.#recountTimer ??= setTimeout(() => {
      this.#recountTimer = undefined;
      // Somebody who is about to choose a tag doesn't want it to move.
      const isUsed = find("tags").matches(":hover, :focus-within");
      if (isUsed || document.hidden) this.#recountSoon();
      else void this.#recount();
    }, recountMs);
  }

  // What the feed brings.

  /** Shows what happened, without moving what is in view. */
  #showEvents(events: readonly PlantEvent[]): void {
    this.#activity.add(events);
    this.#card.follow(events);
    this.#showFresh(this.#list.follow(events, this.#listView.view()));
    this.#recountSoon();
  }

  /** After scrolling, other rows are in view. */
  #settle(): void {
    const { plants, waiting } = this.#list;
    const isSettled = waiting.length === 0 && !plants.some((plant) => plant.goneBecause);
    if (this.#loading || isSettled) return;
    this.#showFresh(this.#list.follow([], this.#listView.view()));
  }

  #showWaiting(): void {
    const ids = this.#list.admit();
    this.#draw();
    const [first] = ids;
    if (first !== undefined) this.#listView.focus(this.#listView.indexOf(first));
    this.#listView.highlight(ids);
  }

  #showFresh(ids: readonly bigint[]): void {
    this.#draw();
    this.#listView.highlight(ids);
  }

  // What happens here.

  #update(plants: readonly Plant[], gone: readonly Plant[]): void {
    this.#list.put(plants);
    this.#list.remove(gone);
    this.#selection.drop(gone);
    this.#draw();
    void this.#recount();
  }

  /** Somebody opened a plant, and the list may have been out of date. */
  #showRead(id: bigint, plant: Plant | undefined): void {
    const known = this.#list.plants.find((each) => each.id === id);
    if (!known || (plant && isSame(plant, known))) return;
    this.#update(plant ? [plant] : [], plant ? [] : [known]);
  }

  #showSaved(plant: Plant, isMerged: boolean): void {
    this.#update([plant], []);
    this.#listView.reveal(plant.id);
    const more = isMerged ? " Somebody else’s change is in it, too." : "";
    notify(message`“${plant.name}” was saved.${more}`);
  }

  #showAdded({ id, name, tag }: Plant): void {
    this.#update([{ id, name, tag }], []);
    this.#listView.reveal(id);
    notify(message`“${name}” was added with the id ${this.#address.link(String(id), id)}.`);
  }

  #showDeleted(plants: readonly Plant[]): void {
    const [first] = plants;
    if (!first) return;
    const index = this.#listView.indexOf(first.id);
    this.#update([], plants);
    if (!this.#listView.focus(Math.max(0, index))) this.#title.focus();
    this.#deletions.add(plants);
  }

  #showRestored(plants: readonly Plant[]): void {
    this.#update(plants, []);
    const [first] = plants;
    if (!first) return;
    this.#listView.focus(this.#listView.indexOf(first.id));
    this.#listView.reveal(first.id);
  }

  // Drawing it.

  #draw(): void {
    const list = this.#list;
    const isComing = this.#query !== list.query;
    drawWords(list, this.#summary, this.#loading !== undefined && !isComing);
    this.#selection.draw(list, this.#summary);
    this.#listView.draw(list.plants);
    this.#drawNews(list);
    this.#tags.draw(this.#summary?.tags ?? [], list.query.tag);
    find("newest").ariaPressed = String(list.query.order === "desc");
    show(find("busy"), isComing);
    // Observe again: an end that stays in view would not be reported twice.
    this.#end.disconnect();
    this.#end.observe(find("load-more"));
  }

  /** The button that shows new plants points to where they are, above or below the view. */
  #drawNews(list: PlantList): void {
    const { plants, waiting } = list;
    const [first] = waiting;
    const end = first && (plants[this.#listView.view().last] ?? plants.at(-1));
    const isBelow = first && end ? list.isBefore(end.id, first.id) : false;
    const button = find("news");
    button.textContent = renderCount(waiting.length, "new plant");
    button.classList.toggle("below", isBelow);
    show(button, first !== undefined);
  }
}

function isSameQuery(a: Query, b: Query): boolean {
  return a.tag === b.tag && a.q === b.q && a.order === b.order;
}

function toQ(text: string): string | undefined {
  return text.trim() || undefined;
}
