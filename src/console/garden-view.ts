/** The page of an open garden: loads plants, shows them, and keeps up with what changes them. */

import { createMatcher } from "../domain/search.ts";
import { renderCount } from "../plant-file/words.ts";
import { Activity } from "./activity.ts";
import { AddForm } from "./add-form.ts";
import { Address, type Place } from "./address.ts";
import {
  type Api,
  describeError,
  type Host,
  isSame,
  type Me,
  type Plant,
  type PlantEvent,
  pageSize,
  pageSizeMax,
  type Query,
  type Summary,
  toRefusal,
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
import { SelectionBar } from "./selection-bar.ts";
import { TagsView } from "./tags-view.ts";
import { Transfers } from "./transfers.ts";

/** The next page is loaded when the end of the list is this close to the window. */
const loadAheadPixels = 1_600;
/** How long somebody who types pauses before the service searches. */
const typingMs = 200;
/** How often plants and tags are counted while others change them. */
const recountMs = 3_000;

export class GardenView {
  readonly #onExpired: () => void;
  readonly #title = find("garden-title");
  readonly #filterInput = find<HTMLInputElement>("filter");
  readonly #moreButton = find("load-more");
  readonly #host: Host = {
    api: () => this.#openApi(),
    onError: (error) => this.#handle(error),
  };
  readonly #address = new Address((place) => this.#follow(place));
  readonly #selection = new Selection();
  readonly #card = new PlantCard({
    ...this.#host,
    onRead: (id, plant) => this.#showRead(id, plant),
    onSaved: (plant, isMerged) => this.#showSaved(plant, isMerged),
    onDeleted: (plant) => this.#showDeleted([plant]),
    onMove: (plant) => this.#address.go({ ...this.#address.place, plant }),
    onClosed: (id) => {
      // The row that opened it may have been redrawn or removed.
      if (!this.#list.focus(this.#list.indexOf(id))) this.#title.focus();
    },
  });
  readonly #selectionBar = new SelectionBar(this.#selection, {
    ...this.#host,
    garden: () => this.#garden,
    onChange: () => this.#draw(),
    onAll: () => void this.#countMatches(),
    onDeleted: (plants) => this.#showDeleted(plants),
    onStale: () => void this.#refresh(),
  });
  readonly #list = new ListView(this.#selection, {
    onOpen: ({ id }) => this.#address.go({ ...this.#address.place, plant: id }),
    onDelete: (plant) => this.#canWrite && void this.#card.delete(plant),
    onToggle: (index, isRange) => {
      this.#selection.toggle(this.#garden.plants, index, isRange);
      this.#draw();
    },
    onLeave: () => this.#filterInput.focus(),
  });
  readonly #tags = new TagsView((tag) => this.#address.go({ ...this.#coming.query, tag }));
  readonly #deletions = new Deletions({
    ...this.#host,
    onRestored: (plants) => this.#showRestored(plants),
  });
  readonly #add = new AddForm({
    ...this.#host,
    onAdded: (plant) => this.#showAdded(plant),
  });
  readonly #transfers = new Transfers({
    ...this.#host,
    query: () => this.#garden.query,
    onChanged: () => void this.#refresh(),
  });
  readonly #activity = new Activity({
    ...this.#host,
    link: ({ id, name }) => this.#address.link(name, () => ({ ...this.#garden.query, plant: id })),
  });
  readonly #feed = new Feed({
    ...this.#host,
    onEvents: (events) => this.#showEvents(events),
    isBusy: () => this.#openApi().isWriting() || this.#coming.isLoading,
    onMissed: () => {
      this.#activity.reset();
      void this.#refresh();
    },
  });
  // Under load several entries arrive together; the last one is current.
  readonly #end = new IntersectionObserver(
    (entries) => entries.at(-1)?.isIntersecting && this.#loadMore(),
    { rootMargin: `${loadAheadPixels}px` },
  );

  #api: Api | undefined;
  /** Whose drafts are kept, after the token expired. */
  #owner = "";
  #summary: Summary | undefined;
  #summaries = 0;
  /** The list that is shown. */
  #garden = makeGarden({});
  /** The same, or the one that is about to be shown. */
  #coming = this.#garden;
  /** Ends the requests for it. */
  #loading = new AbortController();
  #typingTimer: ReturnType<typeof setTimeout> | undefined;
  #recountTimer: ReturnType<typeof setTimeout> | undefined;
  #recountedAt = 0;
  /** Resolves once the feed is ready for lists. */
  #isFollowing = Promise.resolve();
  /** Hides the message that a refresh has failed. */
  #hideTrouble = () => {};

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired;
    const input = this.#filterInput;
    input.addEventListener("input", () => {
      clearTimeout(this.#typingTimer);
      this.#typingTimer = setTimeout(() => this.#search(), typingMs);
    });
    input.addEventListener("keydown", (event) => this.#pressInFilter(event));
    this.#title.addEventListener("keydown", (event) => this.#enterList(event));
    find("newest").addEventListener("click", () => {
      const { order, ...query } = this.#coming.query;
      this.#address.go({ ...query, order: order ? undefined : "desc" });
    });
    find("clear-filter").addEventListener("click", () => this.#showAll());
    find("refresh").addEventListener("click", () => void this.#refresh());
    find("first-add").addEventListener("click", () => this.#add.open());
    for (const id of ["retry", "load-more"]) {
      find(id).addEventListener("click", () => {
        void this.#load();
        this.#title.focus({ preventScroll: true });
      });
    }
    find("notice-close").addEventListener("click", hideNotice);
    find("news").addEventListener("click", () => this.#showWaiting());
    addEventListener("scrollend", () => this.#settle());
    listenForShortcuts({
      "/": () => input.focus(),
      n: () => this.#canWrite && this.#add.open(),
      x: () => this.#canWrite && this.#selectionBar.toggle(),
      r: () => void this.#refresh(),
      z: () => void this.#deletions.undo(),
    });
  }

  /** Shows what the address says, and to its owner what was typed before a token expired. */
  open(api: Api, me?: Me): void {
    this.#api = api;
    if (!me || toOwner(me) !== this.#owner) this.#forgetDrafts();
    this.#isFollowing = this.#feed.open(api, me);
    const { plant, ...query } = this.#address.place;
    this.#filterInput.value = query.q ?? "";
    void this.#start(query);
    this.#title.focus();
    if (plant !== undefined) void this.#card.open(plant, undefined);
  }

  /** Forgets everything, except what was typed before the token expired. */
  close(isExpired: boolean): void {
    this.#owner = isExpired && this.#summary ? toOwner(this.#summary.me) : "";
    this.#api = undefined;
    this.#summary = undefined;
    this.#loading.abort();
    this.#feed.close();
    this.#activity.reset();
    clearTimeout(this.#typingTimer);
    clearTimeout(this.#recountTimer);
    this.#recountTimer = undefined;
    this.#garden = makeGarden({});
    this.#coming = this.#garden;
    this.#selection.setOn(false);
    this.#deletions.forget();
    this.#transfers.reset();
    this.#card.suspend();
    if (!isExpired) {
      this.#forgetDrafts();
      this.#address.replace({});
    }
    hideNotice();
    this.#draw();
  }

  #forgetDrafts(): void {
    this.#add.reset();
    this.#card.dismiss();
  }

  #openApi(): Api {
    if (!this.#api) throw new Error("No garden is open.");
    return this.#api;
  }

  get #canWrite(): boolean {
    return this.#summary?.me.scope === "write";
  }

  /** Shows what the address says now. */
  #follow({ plant, ...query }: Place): void {
    if (!this.#api) return;
    if (toQ(this.#filterInput.value) !== query.q) this.#filterInput.value = query.q ?? "";
    if (!isSameQuery(query, this.#coming.query)) void this.#start(query);
    if (plant === this.#card.id) return;
    const known = this.#garden.plants.find(({ id }) => id === plant);
    if (plant === undefined) this.#card.close();
    else void this.#card.open(plant, known);
  }

  #search(): void {
    clearTimeout(this.#typingTimer);
    const { query } = this.#coming;
    const q = toQ(this.#filterInput.value);
    if (q === query.q) return;
    // Back ends a search as a whole, not letter by letter.
    if (q !== undefined && query.q !== undefined) this.#address.replace({ ...query, q });
    else this.#address.go({ ...query, q });
  }

  #pressInFilter(event: KeyboardEvent): void {
    if (event.key === "Enter") this.#search();
    if (event.key === "Escape") {
      if (this.#filterInput.value !== "" || isFiltered(this.#coming.query)) this.#showAll();
      else this.#filterInput.blur();
    }
    this.#enterList(event);
  }

  #enterList(event: KeyboardEvent): void {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    this.#list.focusFirst();
  }

  #showAll(): void {
    this.#filterInput.value = "";
    clearTimeout(this.#typingTimer);
    this.#address.go({ order: this.#coming.query.order });
    this.#filterInput.focus();
  }

  /** Starts a list. What is shown stays until its first page is here. */
  async #start(query: Query, limit = pageSize): Promise<void> {
    this.#loading.abort();
    this.#loading = new AbortController();
    this.#coming = makeGarden(query);
    if (!this.#garden.isLoaded) this.#garden = this.#coming;
    await this.#load(limit);
  }

  /** Loads everything again that was loaded. */
  async #refresh(): Promise<void> {
    if (!this.#api) return;
    const limit = Math.max(this.#garden.size, pageSize);
    await Promise.all([this.#start(this.#coming.query, limit), this.#recount()]);
  }

  /** Loads the next page. */
  async #load(limit = pageSize): Promise<void> {
    const api = this.#api;
    const garden = this.#coming;
    const { signal } = this.#loading;
    if (!api || garden.isLoading) return;
    const isFirst = !garden.isLoaded;
    garden.isLoading = true;
    garden.loadError = undefined;
    this.#draw();
    try {
      await this.#isFollowing;
      const [page, summary] = await Promise.all([
        api.page(garden.query, garden.next, limit, signal),
        this.#summary ?? api.summarize(),
      ]);
      if (signal.aborted) return;
      this.#summary ??= summary;
      garden.addPage(page);
    } catch (error) {
      if (signal.aborted || this.#handle(error)) return;
      garden.loadError = error;
    } finally {
      garden.isLoading = false;
    }
    if (isFirst) this.#arrive(garden);
    this.#draw();
    if (isFirst && garden.isLoaded) {
      announce(`${this.#title.textContent} ${find("garden-note").textContent}`);
    }
    // One page of a search looks at a part of the garden and may find little in it.
    if (garden.size < pageSize) this.#loadMore();
  }

  /** A list is here, or the reason why it isn't. */
  #arrive(garden: Garden): void {
    const isRefresh = isSameQuery(garden.query, this.#garden.query);
    this.#hideTrouble();
    if (isRefresh && garden.loadError !== undefined && garden !== this.#garden) {
      this.#coming = this.#garden;
      const why = describeError(garden.loadError);
      this.#hideTrouble = notify(message`The list couldn’t be refreshed. ${why}`, "trouble");
      return;
    }
    if (!isRefresh) {
      this.#selection.setAll(false);
      // To the title, which says how many there are.
      scrollTo({ top: 0, behavior: "instant" });
    }
    this.#garden = garden;
  }

  #loadMore(): void {
    const { next, loadError } = this.#garden;
    const isCurrent = this.#garden === this.#coming;
    if (isCurrent && next !== undefined && loadError === undefined) void this.#load();
  }

  /** Nobody knows how many plants a search finds before all of them are here. */
  async #countMatches(): Promise<void> {
    const garden = this.#garden;
    const isCounting = () => garden === this.#coming && garden.loadError === undefined;
    if (garden.query.q === undefined) return;
    while (isCounting() && garden.next !== undefined) await this.#load(pageSizeMax);
  }

  /** Counts plants and tags again. */
  async #recount(): Promise<void> {
    const api = this.#openApi();
    const number = ++this.#summaries;
    this.#recountedAt = performance.now();
    try {
      const summary = await api.summarize();
      if (api !== this.#api || number !== this.#summaries) return;
      this.#summary = summary;
      this.#draw();
    } catch (error) {
      // The numbers stay as they are. Whatever is asked for next shows what is wrong.
      if (api === this.#api) this.#handle(error);
    }
  }

  /** Handles what concerns the whole page; false if the error is something else. */
  #handle(error: unknown): boolean {
    // Nobody is waiting for it after signing out.
    if (!this.#api) return true;
    if (toRefusal(error)?.code !== "unauthenticated") return false;
    this.#onExpired();
    return true;
  }

  /** Shows what others did, where it doesn't move what is in view. */
  #showEvents(events: readonly PlantEvent[]): void {
    const garden = this.#garden;
    this.#activity.add(events);
    if (!garden.isLoaded) return;
    const fresh = garden.follow(events, this.#list.view());
    const gone = events.filter(({ type }) => type === "plant.deleted").map(({ plant }) => plant);
    if (!this.#selection.isAll) this.#selection.drop(gone);
    this.#draw();
    this.#list.highlight(fresh);
    this.#card.follow(events);
    const waitMs = Math.max(0, this.#recountedAt + recountMs - performance.now());
    this.#recountTimer ??= setTimeout(() => this.#recountUnlessUsed(), waitMs);
  }

  /** Bars that somebody is about to choose stay where they are. */
  #recountUnlessUsed(): void {
    const isUsed = find("tags").matches(":hover, :focus-within") || document.hidden;
    const again = () => this.#recountUnlessUsed();
    this.#recountTimer = isUsed ? setTimeout(again, recountMs) : undefined;
    if (!isUsed) void this.#recount();
  }

  /** After scrolling, something else is in view. */
  #settle(): void {
    const { plants, waiting, isLoading } = this.#garden;
    if (isLoading || (waiting.length === 0 && plants.every(({ left }) => !left))) return;
    const fresh = this.#garden.follow([], this.#list.view());
    this.#draw();
    this.#list.highlight(fresh);
  }

  #showWaiting(): void {
    const ids = this.#garden.admit();
    this.#draw();
    const [first] = ids;
    if (first !== undefined) this.#list.focus(this.#list.indexOf(first));
    this.#list.highlight(ids);
  }

  /** Shows plants as they are now, without those that are gone. */
  #update(plants: readonly Plant[], gone: readonly Pick<Plant, "id">[]): void {
    for (const garden of new Set([this.#garden, this.#coming])) {
      garden.put(plants);
      garden.remove(gone);
    }
    this.#selection.drop(gone);
    this.#draw();
    void this.#recount();
  }

  /** Somebody has looked at one plant. */
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

  #showAdded(plant: Plant): void {
    this.#update([plant], []);
    this.#list.reveal(plant.id);
    const link = this.#address.link(String(plant.id), () => ({
      ...this.#garden.query,
      plant: plant.id,
    }));
    notify(message`“${plant.name}” was added with the id ${link}.`);
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

  #draw(): void {
    const garden = this.#garden;
    const { order, tag } = garden.query;
    drawWords(garden, this.#summary);
    this.#selectionBar.draw(garden, this.#summary);
    this.#list.draw(garden.plants);
    this.#drawNews(garden);
    this.#tags.draw(this.#summary?.tags ?? [], tag);
    find("newest").ariaPressed = String(order === "desc");
    show(find("busy"), this.#coming !== garden);
    this.#drawEnd(garden);
  }

  /** Where new plants would appear: above or below what is in view. */
  #drawNews(garden: Garden): void {
    const { plants, waiting } = garden;
    const [first] = waiting;
    const end = first && (plants[this.#list.view().last] ?? plants.at(-1));
    const isBelow = first && end ? garden.isBefore(end.id, first.id) : false;
    const button = find("news");
    button.textContent = renderCount(waiting.length, "new plant");
    button.classList.toggle("below", isBelow);
    show(button, first !== undefined);
    show(find("open-activity"), this.#summary?.me.lastEvent !== undefined);
  }

  #drawEnd({ size, next, isLoading, loadError, query }: Garden): void {
    const hasFailed = loadError !== undefined && size > 0;
    const note = find("more-note");
    const found = `${renderCount(size)} found so far`;
    note.textContent = hasFailed
      ? `Couldn’t load more plants. ${describeError(loadError)}`
      : `Loading… ${query.q === undefined ? `${renderCount(size, "plant")} so far` : found}`;
    show(note, hasFailed || (isLoading && next !== undefined));
    this.#moreButton.textContent = hasFailed ? "Try again" : "Load more";
    show(this.#moreButton, next !== undefined && !isLoading);
    // Observe again: an end that stays in view would not be reported twice.
    this.#end.disconnect();
    this.#end.observe(this.#moreButton);
  }
}

/** Words that are a number find the plant with this id, too. */
function makeGarden(query: Query): Garden {
  const { tag, q } = query;
  const hasWords = q === undefined ? () => true : createMatcher(q);
  const matches = (plant: Plant) =>
    (tag === undefined || plant.tag === tag) && (hasWords(plant) || String(plant.id) === q);
  return new Garden(query, matches);
}

function isSameQuery(a: Query, b: Query): boolean {
  return a.tag === b.tag && a.q === b.q && a.order === b.order;
}

function toQ(text: string): string | undefined {
  return text.trim() || undefined;
}

function toOwner({ user, garden }: Me): string {
  return JSON.stringify([user, garden]);
}
