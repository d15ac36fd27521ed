/** The page of an open garden: what is loaded, what is shown of it, and what is done to it. */
import { AddForm } from "./add-form.ts";
import { type Api, type Page, type Plant, Refusal, Unreachable } from "./api.ts";
import { Deletions } from "./deletions.ts";
import { count, find, message, show } from "./elements.ts";
import { type Filter, Garden } from "./garden.ts";
import { ListView } from "./list-view.ts";
import { announce, hideNotice, notify } from "./notices.ts";
import { listenForShortcuts } from "./shortcuts.ts";
import { TagsView } from "./tags-view.ts";

/** How far below the window the end of the list may be when the next page is asked for. */
const loadAheadPixels = 1_600;
const everything: Filter = { text: "", tag: undefined };

export class GardenView {
  readonly #onExpired: () => void;
  readonly #filterInput = find<HTMLInputElement>("filter");
  readonly #moreButton = find("load-more");
  readonly #list = new ListView((plant) => this.#delete(plant));
  readonly #tags = new TagsView((tag) => this.#setFilter({ ...this.#filter, tag }));
  readonly #deletions = new Deletions({
    send: (plant) => this.#sendDeletion(plant),
    restore: (plants) => this.#restore(plants),
  });
  readonly #add = new AddForm({
    create: (draft, key) => this.#opened().create(draft, key),
    onAdded: (plant) => this.#showAdded(plant),
    onError: (error) => this.#handle(error),
  });
  // On a busy machine several notes come together, and the last is the one that holds.
  readonly #end = new IntersectionObserver(
    (entries) => entries.at(-1)?.isIntersecting && this.#loadAhead(),
    { rootMargin: `${loadAheadPixels}px` },
  );

  #api: Api | undefined;
  #garden = new Garden();
  #filter = everything;
  /** Where the list goes on; absent when all is here. */
  #next: string | undefined;
  #isLoading = false;
  #hasFailed = false;
  #canWrite = true;

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired;
    this.#filterInput.addEventListener("input", () =>
      this.#setFilter({ ...this.#filter, text: this.#filterInput.value }),
    );
    this.#filterInput.addEventListener("keydown", ({ key }) => key === "Escape" && this.#showAll());
    find("clear-filter").addEventListener("click", () => this.#showAll());
    find("first-add").addEventListener("click", () => this.#add.open());
    find("retry").addEventListener("click", () => void this.#load("page"));
    this.#moreButton.addEventListener("click", () => void this.#load("page"));
    find("load-all").addEventListener("click", () => void this.#load("all"));
    for (const event of ["online", "offline"]) {
      addEventListener(event, () => show(find("offline"), !navigator.onLine));
    }
    listenForShortcuts({
      "/": () => this.#filterInput.focus(),
      n: () => this.#api && this.#canWrite && this.#add.open(),
      z: () => this.#deletions.undo(),
    });
  }

  /** Shows the garden behind the API; with its first page, where that has been read already. */
  open(api: Api, first?: Page): void {
    this.#api = api;
    this.#canWrite = true;
    show(find("offline"), !navigator.onLine);
    if (first) this.#take(first);
    this.#draw();
    find("garden-title").focus();
    if (!first) void this.#load("page");
  }

  /** Does what still waits to be done; answers what is to be said of it, or nothing. */
  async finish(): Promise<string> {
    const left = await this.#deletions.finish();
    const names = left.map(({ name }) => `“${name}”`).join(", ");
    return names && `Signed out. Perhaps not deleted: ${names}.`;
  }

  /** Forgets everything. */
  close(): void {
    this.#api = undefined;
    this.#garden = new Garden();
    this.#next = undefined;
    this.#hasFailed = false;
    this.#isLoading = false;
    this.#filter = everything;
    this.#filterInput.value = "";
    this.#deletions.forget();
    this.#add.reset();
    hideNotice();
    this.#draw();
  }

  #opened(): Api {
    if (!this.#api) throw new Error("No garden is open.");
    return this.#api;
  }

  #take(page: Page): void {
    this.#garden.add(page.plants);
    this.#next = page.next;
  }

  /** One page, all of them, or as many as come while a filter is set. */
  async #load(extent: "page" | "all" | "while filtered"): Promise<void> {
    if (this.#isLoading) return;
    const api = this.#opened();
    this.#isLoading = true;
    this.#hasFailed = false;
    this.#draw();
    try {
      do {
        const page = await api.list(this.#next);
        if (api !== this.#api) return;
        this.#take(page);
        if (this.#next) this.#draw();
        if (extent === "while filtered" && !this.#isFiltered()) break;
      } while (this.#next && extent !== "page");
    } catch (error) {
      if (api !== this.#api) return;
      this.#hasFailed = true;
      if (!this.#handle(error)) this.#explain(error);
    } finally {
      if (api === this.#api) {
        this.#isLoading = false;
        this.#draw();
        if (!this.#hasFailed) this.#loadRestIfNothingFits();
      }
    }
  }

  /** Not while a filter is set: its short list would draw in the whole garden, unasked. */
  #loadAhead(): void {
    if (this.#next && !this.#hasFailed && !this.#isFiltered()) void this.#load("page");
  }

  /** Otherwise "no plant fits" would only mean: none of those loaded so far. */
  #loadRestIfNothingFits(): void {
    const fits = this.#garden.select(this.#filter).length > 0;
    if (this.#next && this.#isFiltered() && !fits) void this.#load("while filtered");
  }

  #explain(error: unknown): void {
    const isAway = error instanceof Unreachable;
    find("trouble-title").textContent = isAway ? "The service is out of reach" : "That went wrong";
    find("trouble-note").textContent = error instanceof Error ? error.message : String(error);
  }

  /** What an error means for the whole page; false if it means nothing to it. */
  #handle(error: unknown): boolean {
    // Whoever has left does not care.
    if (!this.#api) return true;
    if (!(error instanceof Refusal)) return false;
    if (error.status === 401) {
      this.#onExpired();
      return true;
    }
    if (error.status !== 403) return false;
    // The service does not say beforehand what a token may do: this is how a page learns it.
    this.#canWrite = false;
    this.#add.reset();
    this.#draw();
    find("read-only").scrollIntoView({ block: "center" });
    announce(find("read-only").textContent);
    return true;
  }

  #isFiltered(): boolean {
    return this.#filter.text !== "" || this.#filter.tag !== undefined;
  }

  #setFilter(filter: Filter): void {
    this.#filter = filter;
    const top = find("table").getBoundingClientRect().top;
    if (top < 0) scrollBy({ top, behavior: "instant" });
    this.#draw();
    this.#loadRestIfNothingFits();
    announce(find("filter-note").textContent);
  }

  #showAll(): void {
    this.#filterInput.value = "";
    this.#setFilter(everything);
    this.#filterInput.focus();
  }

  #showAdded(plant: Plant): void {
    this.#garden.put([plant]);
    if (this.#garden.select(this.#filter).every(({ id }) => id !== plant.id)) {
      this.#filter = everything;
      this.#filterInput.value = "";
    }
    this.#draw();
    this.#list.reveal(plant.id);
    notify(message`“${plant.name}” was added with the id ${plant.id}.`);
  }

  #delete(plant: Plant): void {
    const place = this.#list.indexOf(plant.id);
    this.#garden.remove(plant.id);
    this.#draw();
    if (!this.#list.focus(place)) this.#filterInput.focus();
    this.#deletions.start(plant);
  }

  #restore(plants: readonly Plant[]): void {
    this.#garden.put(plants);
    this.#draw();
    const [first] = plants;
    if (!first) return;
    this.#list.focus(this.#list.indexOf(first.id));
    this.#list.reveal(first.id);
  }

  async #sendDeletion(plant: Plant): Promise<boolean> {
    const api = this.#api;
    try {
      await api?.delete(plant.id);
      notify(message`“${plant.name}” is deleted.`);
      return true;
    } catch (error) {
      if (api !== this.#api) return false;
      if (error instanceof Refusal && error.status === 404) {
        notify(message`“${plant.name}” was gone already.`);
        return true;
      }
      this.#garden.put([plant]);
      this.#draw();
      if (this.#handle(error)) return false;
      const reason = error instanceof Error ? error.message : String(error);
      const advice = error instanceof Unreachable ? " Delete it once more to be sure." : "";
      notify(message`“${plant.name}” is shown again. ${reason}${advice}`, "trouble");
      return false;
    }
  }

  #draw(): void {
    const { size } = this.#garden;
    const shown = this.#garden.select(this.#filter);
    const tags = this.#garden.countTags();
    const isFirstLoad = this.#isLoading && size === 0;
    const isTrouble = this.#hasFailed && size === 0;
    const isEmpty = size === 0 && !this.#next && !isFirstLoad && !isTrouble;
    this.#list.setPlants(shown, { canDelete: this.#canWrite });
    this.#tags.draw(tags, this.#filter.tag);

    find("garden-title").textContent = size === 0 ? "Your garden" : count(size, "plant");
    find("garden-note").textContent = this.#describe(tags.filter(([tag]) => tag !== "").length);
    find("filter-note").textContent = this.#isFiltered() ? this.#describeFilter(shown.length) : "";
    find("no-match-note").textContent = this.#next
      ? `None of the ${count(size, "plant")} loaded so far. ${this.#hasFailed ? "" : "Loading the rest…"}`
      : "No name, tag or id holds what you typed.";
    show(find("table"), shown.length > 0);
    show(find("empty"), isEmpty);
    show(find("no-match"), size > 0 && shown.length === 0);
    show(find("trouble"), isTrouble);
    show(find("loading"), isFirstLoad);
    show(find("read-only"), !this.#canWrite);
    show(find("open-add"), this.#canWrite);
    show(find("first-add"), this.#canWrite);
    document.body.classList.toggle("bare", size === 0);
    this.#drawEnd(size);
  }

  #describe(tags: number): string {
    const parts = [];
    if (this.#next) parts.push("loaded so far, more as you scroll");
    if (tags > 0) parts.push(count(tags, "tag"));
    return parts.join(" · ");
  }

  #describeFilter(shown: number): string {
    const all = count(this.#garden.size, "plant");
    const extent = this.#next ? `the ${all} loaded so far; there are more` : all;
    return `${shown.toLocaleString("en")} of ${extent}`;
  }

  #drawEnd(size: number): void {
    const hasMore = this.#next !== undefined;
    const failed = this.#hasFailed && size > 0;
    const note = find("more-note");
    note.textContent = failed
      ? `The next plants did not come. ${find("trouble-note").textContent}`
      : `Loading… ${count(size, "plant")} so far`;
    show(note, size > 0 && (failed || this.#isLoading));
    this.#moreButton.textContent = failed ? "Try again" : "Load more";
    show(this.#moreButton, hasMore && !this.#isLoading);
    show(find("load-all"), hasMore && !this.#isLoading);
    // Observed anew, because an end that stays in sight would not be noticed again.
    this.#end.disconnect();
    this.#end.observe(this.#moreButton);
  }
}
