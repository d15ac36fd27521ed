/**
 * The page of a garden. The address says what to show; this loads it, draws it, and keeps it up to
 * date with what happens here and elsewhere.
 */
import { renderCount } from "../wording.ts";
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
import { Garden } from "./garden.ts";
import { drawWords, isFiltered } from "./garden-words.ts";
import { ListView } from "./list-view.ts";
import { PlantCard } from "./plant-card.ts";
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
  readonly #address = new Address((place) => this.#follow(place));
  readonly #card = new PlantCard({
    onRead: (id, plant) => this.#showRead(id, plant),
    onSaved: (plant, isMerged) => this.#showSaved(plant, isMerged),
    onDeleted: (plant) => this.#showDeleted([plant]),
    onMove: (plant) => this.#address.go({ plant }),
    onClosed: (id) => {
      // The row that opened the card may have been redrawn or removed.
      if (!this.#list.focus(this.#list.indexOf(id))) this.#title.focus();
    },
  });
  readonly #selection = new Selection({
    garden: () => this.#garden,
    loadAll: () => this.#loadAll(),
    onChange: () => this.#draw(),
    onDeleted: (plants) => this.#showDeleted(plants),
    onStale: () => void this.#refresh(),
  });
  readonly #list = new ListView(this.#selection, {
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
  #garden = new Garden({});
  /** What the address asks for: the query of that list, or of the next one. */
  #query: Query = this.#garden.query;
  /** Stops the request for a page. Absent if there is none. */
  #loading: AbortController | undefined;

  constructor() {
    new Transfers({ query: () => this.#garden.query, onChanged: () => void this.#refresh() });
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
      this.#garden.loadError = undefined;
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
    this.#follow(this.#address.place);
  }

  get #canWrite(): boolean {
    return this.#summary?.me.scope === "write";
  }

  // What to show.

  /** Shows what the address says. */
  #follow({ plant, ...query }: Place): void {
    if (plant === undefined) this.#card.close();
    else if (plant !== this.#card.id) {
      void this.#card.open(
        plant,
        this.#garden.plants.find(({ id }) => id === plant),
      );
    }
    if (toQ(this.#filter.value) !== query.q) this.#filter.value = query.q ?? "";
    if (!this.#garden.isLoaded || !isSameQuery(query, this.#query)) void this.#start(query);
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
    this.#list.focusFirst();
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
    const garden = new Garden(query);
    this.#query = query;
    if (!this.#garden.isLoaded) this.#garden = garden;
    if (!(await this.#load(garden, limit))) return;
    const isRefresh = isSameQuery(query, this.#garden.query);
    if (isRefresh && garden.loadError !== undefined && garden !== this.#garden) {
      this.#query = this.#garden.query;
      const why = describeError(garden.loadError);
      notify(message`The list couldn’t be refreshed. ${why}`, "trouble");
    } else {
      if (!isRefresh) {
        this.#selection.clear();
        // The title says how many plants there are.
        scrollTo({ top: 0, behavior: "instant" });
      }
      this.#garden = garden;
    }
    this.#draw();
    if (garden.isLoaded) {
      announce(`${this.#title.textContent} ${find("garden-note").textContent}`);
    }
    this.#loadMoreIfFew();
  }

  /** Loads a page into a list. Returns false if another request has taken over. */
  async #load(garden: Garden, limit = pageSize): Promise<boolean> {
    this.#loading?.abort();
    const loading = new AbortController();
    this.#loading = loading;
    garden.loadError = undefined;
    this.#draw();
    try {
      if (!this.#summary) {
        this.#summary = await api.summarize();
        // Before the first list, so that the feed has whatever happens after it.
        this.#feed.start(this.#summary.me.lastEvent);
      }
      garden.addPage(await api.listPage(garden.query, garden.next, limit, loading.signal));
    } catch (error) {
      if (this.#loading === loading) garden.loadError = error;
    }
    if (this.#loading !== loading) return false;
    this.#loading = undefined;
    return true;
  }

  /** Loads everything again that was loaded. */
  async #refresh(): Promise<void> {
    const limit = Math.max(this.#garden.size, pageSize);
    await Promise.all([this.#start(this.#query, limit), this.#recount()]);
  }

  /** Loads the next page, if there is one and nothing else is loading. */
  async #loadMore(): Promise<void> {
    const { next, loadError } = this.#garden;
    if (next === undefined || loadError !== undefined || this.#loading) return;
    if (!(await this.#load(this.#garden))) return;
    this.#draw();
    this.#loadMoreIfFew();
  }

  /** A page of a search covers a part of the garden, and may find little in it. */
  #loadMoreIfFew(): void {
    if (this.#garden.size < pageSize) void this.#loadMore();
  }

  /** Loads the rest of the list, unless somebody stops selecting or goes elsewhere. */
  async #loadAll(): Promise<void> {
    const garden = this.#garden;
    if (this.#query !== garden.query) return;
    garden.loadError = undefined;
    while (this.#selection.isOn && garden.next !== undefined && garden.loadError === undefined) {
      if (!(await this.#load(garden, pageSizeMax))) return;
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

  // What others do.

  /** Shows what others did, without moving what is in view. */
  #showEvents(events: readonly PlantEvent[]): void {
    this.#activity.add(events);
    this.#card.follow(events);
    this.#showFresh(this.#garden.follow(events, this.#list.view()));
    this.#recountSoon();
  }

  /** After scrolling, other rows are in view. */
  #settle(): void {
    const { plants, waiting } = this.#garden;
    if (this.#loading || (waiting.length === 0 && plants.every(({ left }) => !left))) return;
    this.#showFresh(this.#garden.follow([], this.#list.view()));
  }

  #showWaiting(): void {
    const ids = this.#garden.admit();
    this.#draw();
    const [first] = ids;
    if (first !== undefined) this.#list.focus(this.#list.indexOf(first));
    this.#list.highlight(ids);
  }

  #showFresh(ids: readonly bigint[]): void {
    this.#draw();
    this.#list.highlight(ids);
  }

  // What happens here.

  #update(plants: readonly Plant[], gone: readonly Plant[]): void {
    this.#garden.put(plants);
    this.#garden.remove(gone);
    this.#selection.drop(gone);
    this.#draw();
    void this.#recount();
  }

  /** Somebody opened a plant, and the list may have been out of date. */
  #showRead(id: bigint, plant: Plant | undefined): void {
    const known = this.#garden.plants.find((each) => each.id === id);
    if (!known || (plant && isSame(plant, known))) return;
    this.#update(plant ? [plant] : [], plant ? [] : [known]);
  }

  #showSaved(plant: Plant, isMerged: boolean): void {
    this.#update([plant], []);
    this.#list.reveal(plant.id);
    const more = isMerged ? " Somebody else’s change is in it, too." : "";
    notify(message`“${plant.name}” was saved.${more}`);
  }

  #showAdded({ id, name, tag }: Plant): void {
    this.#update([{ id, name, tag }], []);
    this.#list.reveal(id);
    notify(message`“${name}” was added with the id ${this.#address.link(String(id), id)}.`);
  }

  #showDeleted(plants: readonly Plant[]): void {
    const [first] = plants;
    if (!first) return;
    const index = this.#list.indexOf(first.id);
    this.#update([], plants);
    if (!this.#list.focus(Math.max(0, index))) this.#title.focus();
    this.#deletions.add(plants);
  }

  #showRestored(plants: readonly Plant[]): void {
    this.#update(plants, []);
    const [first] = plants;
    if (!first) return;
    this.#list.focus(this.#list.indexOf(first.id));
    this.#list.reveal(first.id);
  }

  // Drawing it.

  #draw(): void {
    const garden = this.#garden;
    const isComing = this.#query !== garden.query;
    drawWords(garden, this.#summary, this.#loading !== undefined && !isComing);
    this.#selection.draw(garden, this.#summary);
    this.#list.draw(garden.plants);
    this.#drawNews(garden);
    this.#tags.draw(this.#summary?.tags ?? [], garden.query.tag);
    find("newest").ariaPressed = String(garden.query.order === "desc");
    show(find("busy"), isComing);
    // Observe again: an end that stays in view would not be reported twice.
    this.#end.disconnect();
    this.#end.observe(find("load-more"));
  }

  /** The button that shows new plants points to where they are, above or below the view. */
  #drawNews(garden: Garden): void {
    const { plants, waiting } = garden;
    const [first] = waiting;
    const end = first && (plants[this.#list.view().last] ?? plants.at(-1));
    const isBelow = first && end ? garden.isBefore(end.id, first.id) : false;
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
