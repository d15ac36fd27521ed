/** The page of an open garden: loads plants, shows them, and adds and deletes them. */
import { AddForm } from "./add-form.ts";
import { type Api, describeError, type Page, type Plant, toRefusal } from "./api.ts";
import { Deletions } from "./deletions.ts";
import { announce, count, find, hideNotice, message, notify, show } from "./elements.ts";
import { type Filter, Garden } from "./garden.ts";
import { ListView } from "./list-view.ts";
import { TagsView } from "./tags-view.ts";

/** The next page is loaded when the end of the list is this close to the window. */
const loadAheadPixels = 1_600;
const noFilter: Filter = { text: "", tag: undefined };

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
    create: (draft, key) => this.#openApi().create(draft, key),
    onAdded: (plant) => this.#showAdded(plant),
    onError: (error) => this.#handle(error),
  });
  // Under load several entries arrive together; the last one is current.
  readonly #end = new IntersectionObserver(
    (entries) => entries.at(-1)?.isIntersecting && this.#loadAhead(),
    { rootMargin: `${loadAheadPixels}px` },
  );

  #api: Api | undefined;
  #garden = new Garden();
  #filter = noFilter;
  /** The id that the next page starts after; absent before the first page and after the last. */
  #next: bigint | undefined;
  #isLoading = false;
  /** Why the last page didn't come. */
  #loadError: unknown;
  #canWrite = true;

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired;
    this.#filterInput.addEventListener("input", () =>
      this.#setFilter({ ...this.#filter, text: this.#filterInput.value }),
    );
    this.#filterInput.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      if (this.#isFiltered()) this.#showAll();
      else this.#filterInput.blur();
    });
    find("clear-filter").addEventListener("click", () => this.#showAll());
    find("first-add").addEventListener("click", () => this.#add.open());
    find("retry").addEventListener("click", () => void this.#load("page"));
    this.#moreButton.addEventListener("click", () => void this.#load("page"));
    find("load-all").addEventListener("click", () => void this.#load("all"));
    find("notice-close").addEventListener("click", hideNotice);
    for (const event of ["online", "offline"]) {
      addEventListener(event, () => show(find("offline"), !navigator.onLine));
    }
    listenForShortcuts({
      "/": () => this.#filterInput.focus(),
      n: () => this.#api && this.#canWrite && this.#add.open(),
      z: () => this.#deletions.undo(),
    });
  }

  /** Loads the first page unless it is given. */
  open(api: Api, first?: Page): void {
    this.#api = api;
    this.#canWrite = true;
    show(find("offline"), !navigator.onLine);
    if (first) this.#addPage(first);
    this.#draw();
    find("garden-title").focus();
    if (!first) void this.#load("page");
  }

  /** Sends pending deletions. Resolves to a message if some may have failed. */
  async finish(): Promise<Node | string> {
    const left = await this.#deletions.finish();
    if (left.length === 0) return "";
    const names = left.map(({ name }, index) =>
      index === 0 ? message`“${name}”` : message`, “${name}”`,
    );
    const text = document.createDocumentFragment();
    text.append("Signed out. These plants may not have been deleted: ", ...names, ".");
    return text;
  }

  /** Forgets everything. */
  close(): void {
    this.#api = undefined;
    this.#garden = new Garden();
    this.#next = undefined;
    this.#loadError = undefined;
    this.#isLoading = false;
    this.#clearFilter();
    this.#deletions.forget();
    this.#add.reset();
    hideNotice();
    this.#draw();
  }

  #openApi(): Api {
    if (!this.#api) throw new Error("No garden is open.");
    return this.#api;
  }

  #addPage({ plants, next }: Page): void {
    this.#garden.add(plants);
    this.#next = next;
  }

  /** Loads one page, all of them, or further ones for as long as a filter is set. */
  async #load(extent: "page" | "all" | "while filtered"): Promise<void> {
    if (this.#isLoading) return;
    const api = this.#openApi();
    this.#isLoading = true;
    this.#loadError = undefined;
    this.#draw();
    try {
      do {
        const page = await api.page(this.#next);
        if (api !== this.#api) return;
        this.#addPage(page);
        if (this.#next !== undefined) this.#draw();
        if (extent === "while filtered" && !this.#isFiltered()) break;
      } while (this.#next !== undefined && extent !== "page");
    } catch (error) {
      if (api !== this.#api) return;
      this.#loadError = error;
      this.#handle(error);
    } finally {
      if (api === this.#api) {
        this.#isLoading = false;
        this.#draw();
        if (this.#isFiltered()) announce(find("filter-note").textContent);
        this.#loadRestIfNothingMatches();
      }
    }
  }

  /** Not while a filter is set: its short list would pull in the whole garden. */
  #loadAhead(): void {
    if (this.#next !== undefined && !this.#loadError && !this.#isFiltered()) {
      void this.#load("page");
    }
  }

  /** Otherwise "no plants found" would only mean: none of those loaded so far. */
  #loadRestIfNothingMatches(): void {
    if (this.#next === undefined || this.#loadError || !this.#isFiltered()) return;
    if (this.#garden.select(this.#filter).length === 0) void this.#load("while filtered");
  }

  /** Handles what concerns the whole page; false if the error is something else. */
  #handle(error: unknown): boolean {
    // Nobody is waiting for it after signing out.
    if (!this.#api) return true;
    const code = toRefusal(error)?.code;
    if (code === "unauthenticated") {
      this.#onExpired();
      return true;
    }
    if (code !== "forbidden") return false;
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
    this.#loadRestIfNothingMatches();
    announce(find("filter-note").textContent);
  }

  #clearFilter(): void {
    this.#filter = noFilter;
    this.#filterInput.value = "";
  }

  #showAll(): void {
    this.#clearFilter();
    this.#setFilter(noFilter);
    this.#filterInput.focus();
  }

  #showAdded(plant: Plant): void {
    this.#garden.put([plant]);
    if (!this.#garden.select(this.#filter).includes(plant)) this.#clearFilter();
    this.#draw();
    this.#list.reveal(plant.id);
    notify(message`“${plant.name}” was added with the id ${String(plant.id)}.`);
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
      notify(message`“${plant.name}” was deleted.`);
      return true;
    } catch (error) {
      if (api !== this.#api) return false;
      const refusal = toRefusal(error);
      if (refusal?.code === "not-found") {
        notify(message`“${plant.name}” had already been deleted.`);
        return true;
      }
      this.#garden.put([plant]);
      this.#draw();
      if (this.#handle(error)) return false;
      const outcome = refusal ? "was not deleted" : "may not have been deleted";
      notify(message`“${plant.name}” ${outcome}. ${describeError(error)}`, "trouble");
      return false;
    }
  }

  #draw(): void {
    const { size } = this.#garden;
    const shown = this.#garden.select(this.#filter);
    const tags = this.#garden.countTags();
    const hasMore = this.#next !== undefined;
    const isFirstLoad = this.#isLoading && size === 0;
    const isTrouble = this.#loadError !== undefined && size === 0;
    const isEmpty = size === 0 && !hasMore && !isFirstLoad && !isTrouble;
    const isNoMatch = size > 0 && shown.length === 0;
    this.#list.setPlants(shown, { canDelete: this.#canWrite });
    this.#tags.draw(tags, this.#filter.tag);

    const title = hasMore ? `First ${count(size, "plant")}` : count(size, "plant");
    find("garden-title").textContent = size === 0 ? "Your garden" : title;
    find("garden-note").textContent = this.#describe(tags.filter(([tag]) => tag !== "").length);
    find("filter-note").textContent = this.#isFiltered() ? this.#describeMatches(shown.length) : "";
    find("no-match-title").textContent = hasMore ? "Nothing found yet" : "No plants found";
    find("no-match-note").textContent = this.#describeNoMatch();
    find("trouble-note").textContent = isTrouble ? describeError(this.#loadError) : "";
    show(find("table"), shown.length > 0);
    show(find("empty"), isEmpty);
    show(find("no-match"), isNoMatch);
    show(find("trouble"), isTrouble);
    show(find("loading"), isFirstLoad);
    show(find("read-only"), !this.#canWrite);
    show(find("open-add"), this.#canWrite);
    show(find("first-add"), this.#canWrite);
    document.body.classList.toggle("bare", size === 0);
    this.#drawEnd(size, isNoMatch);
  }

  #describe(tags: number): string {
    const parts = [];
    if (this.#next !== undefined) parts.push("more as you scroll");
    if (tags > 0) parts.push(count(tags, "tag"));
    return parts.join(" · ");
  }

  #describeMatches(shown: number): string {
    const all = count(this.#garden.size, "plant");
    const extent = this.#next === undefined ? all : `the ${all} loaded so far`;
    return `${shown.toLocaleString("en")} of ${extent}`;
  }

  #describeNoMatch(): string {
    if (this.#next === undefined) return "No name, tag or id matches.";
    return this.#loadError === undefined ? "Loading the rest of your plants…" : "";
  }

  #drawEnd(size: number, isNoMatch: boolean): void {
    const hasMore = this.#next !== undefined;
    const hasFailed = this.#loadError !== undefined && size > 0;
    const note = find("more-note");
    note.textContent = hasFailed
      ? `Couldn’t load more plants. ${describeError(this.#loadError)}`
      : `Loading… ${count(size, "plant")} so far`;
    show(note, size > 0 && (hasFailed || (this.#isLoading && !isNoMatch)));
    this.#moreButton.textContent = hasFailed ? "Try again" : "Load more";
    show(this.#moreButton, hasMore && !this.#isLoading);
    show(find("load-all"), hasMore && !this.#isLoading);
    // Observe again: an end that stays in view would not be reported twice.
    this.#end.disconnect();
    this.#end.observe(this.#moreButton);
  }
}

/** Single keys, while nothing is being typed. People can turn them off, as some need to. */
function listenForShortcuts(actions: Readonly<Record<string, () => void>>): void {
  const areOn = find<HTMLInputElement>("use-shortcuts");
  document.addEventListener("keydown", (event) => {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    const isTyping = target instanceof HTMLInputElement && target.type !== "checkbox";
    const action = actions[key];
    if (!action || isTyping || !areOn.checked || altKey || ctrlKey || metaKey) return;
    event.preventDefault();
    action();
  });
}
