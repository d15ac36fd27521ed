/** The page of an open garden: loads plants, shows them, and adds and deletes them. */
import { AddForm } from "./add-form.ts";
import { type Api, describeError, type Me, type Opening, type Plant, toRefusal } from "./api.ts";
import { Deletions } from "./deletions.ts";
import { announce, count, find, hideNotice, message, notify, show } from "./elements.ts";
import { Garden } from "./garden.ts";
import { ListView } from "./list-view.ts";
import { PlantCard } from "./plant-card.ts";
import { readTagFromAddress, TagsView, writeTagToAddress } from "./tags-view.ts";
import { Transfers } from "./transfers.ts";

/** The next page is loaded when the end of the list is this close to the window. */
const loadAheadPixels = 1_600;

type Extent = "page" | "all" | "while filtered";

export class GardenView {
  readonly #onExpired: () => void;
  readonly #filterInput = find<HTMLInputElement>("filter");
  readonly #moreButton = find("load-more");
  readonly #card = new PlantCard();
  readonly #list = new ListView({
    onOpen: (plant) => this.#card.open(plant),
    onDelete: (plant) => this.#delete(plant),
  });
  readonly #tags = new TagsView((tag) => this.#chooseTag(tag));
  readonly #deletions = new Deletions({
    send: (plant) => this.#sendDeletion(plant),
    restore: (plants) => this.#restore(plants),
  });
  readonly #add = new AddForm({
    create: (draft, key) => this.#openApi().create(draft, key),
    onAdded: (plant) => this.#showAdded(plant),
    onError: (error) => this.#handle(error),
  });
  readonly #transfers = new Transfers({
    api: () => this.#openApi(),
    tag: () => this.#shown.tag,
    onImported: () => void this.#reload(),
    onError: (error) => this.#handle(error),
  });
  // Under load several entries arrive together; the last one is current.
  readonly #end = new IntersectionObserver(
    (entries) => entries.at(-1)?.isIntersecting && this.#loadAhead(),
    { rootMargin: `${loadAheadPixels}px` },
  );

  #api: Api | undefined;
  #me: Me | undefined;
  #all = Garden.ofAll();
  /** The same, or the plants of the chosen tag. */
  #shown = this.#all;
  /** How much the current load fetches. */
  #extent: Extent = "page";
  /** Whether the first page of all plants is here. */
  #isOpened = false;
  #filterText = "";

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired;
    this.#filterInput.addEventListener("input", () => this.#setFilterText(this.#filterInput.value));
    this.#filterInput.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      if (this.#filterText !== "" || this.#shown.tag !== undefined) this.#showAll();
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
      n: () => this.#me?.scope === "write" && this.#add.open(),
      z: () => this.#deletions.undo(),
    });
  }

  /** Loads the first page unless it is given. */
  open(api: Api, opening?: Opening): void {
    this.#api = api;
    show(find("offline"), !navigator.onLine);
    if (opening) this.#begin(opening);
    else void this.#load("page");
    find("garden-title").focus();
  }

  #begin({ me, first }: Opening): void {
    this.#me = me;
    this.#all.addPage(first);
    this.#all.isLoading = false;
    this.#isOpened = true;
    const tag = readTagFromAddress();
    if (tag === undefined) this.#draw();
    else this.#chooseTag(tag);
  }

  /** Starts over, for plants that came by an import. */
  async #reload(): Promise<void> {
    const api = this.#api;
    // The new list would bring back the plants that are waiting to be deleted.
    await this.#deletions.finish();
    if (!api || api !== this.#api) return;
    this.#all = Garden.ofAll();
    this.#shown = this.#all;
    this.#isOpened = false;
    await this.#load("page");
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
    this.#me = undefined;
    this.#all = Garden.ofAll();
    this.#shown = this.#all;
    this.#isOpened = false;
    this.#clearFilter();
    writeTagToAddress(undefined);
    this.#deletions.forget();
    this.#add.reset();
    this.#transfers.reset();
    this.#card.close();
    hideNotice();
    this.#draw();
  }

  #openApi(): Api {
    if (!this.#api) throw new Error("No garden is open.");
    return this.#api;
  }

  /** Loads one page, all of them, or further ones for as long as a filter is set. */
  async #load(extent: Extent): Promise<void> {
    const garden = this.#shown;
    // A click on "Load all" while a page is loading must not be lost.
    if (!garden.isLoading || extent === "all") this.#extent = extent;
    if (garden.isLoading) return;
    const api = this.#openApi();
    garden.isLoading = true;
    garden.loadError = undefined;
    this.#draw();
    try {
      do {
        if (!this.#isOpened) {
          const opening = await api.open();
          if (api === this.#api && garden === this.#all) this.#begin(opening);
          return;
        }
        garden.addPage(await api.page(garden.next, garden.tag));
        if (garden !== this.#shown) return;
        if (garden.next !== undefined) this.#draw();
        if (this.#extent === "while filtered" && this.#filterText === "") break;
      } while (garden.next !== undefined && this.#extent !== "page");
    } catch (error) {
      garden.loadError = error;
      if (api === this.#api) this.#handle(error);
    } finally {
      garden.isLoading = false;
      if (garden === this.#shown) {
        this.#draw();
        this.#announceShown();
        this.#loadRestIfNothingMatches();
      }
    }
  }

  #announceShown(): void {
    if (this.#filterText !== "") announce(find("filter-note").textContent);
    else if (this.#shown.tag !== undefined) {
      announce(`${find("garden-title").textContent} ${find("garden-note").textContent}`);
    }
  }

  /** Not while a filter is set: its short list would pull in the whole garden. */
  #loadAhead(): void {
    const { next, loadError } = this.#shown;
    if (next !== undefined && !loadError && this.#filterText === "") void this.#load("page");
  }

  /** Otherwise "no plants found" would only mean: none of those loaded so far. */
  #loadRestIfNothingMatches(): void {
    const { next, loadError } = this.#shown;
    if (next === undefined || loadError || this.#filterText === "") return;
    if (this.#shown.select(this.#filterText).length === 0) void this.#load("while filtered");
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
    return false;
  }

  #setFilterText(text: string): void {
    this.#filterText = text;
    this.#scrollToTop();
    this.#draw();
    this.#loadRestIfNothingMatches();
    this.#announceShown();
  }

  /** The service filters by tag, so this finds all plants of a tag in a garden of any size. */
  #chooseTag(tag: string | undefined): void {
    this.#shown = tag === undefined ? this.#all : this.#all.ofTag(tag);
    writeTagToAddress(tag);
    this.#scrollToTop();
    if (tag === undefined) this.#setFilterText(this.#filterText);
    else void this.#load("page");
  }

  #scrollToTop(): void {
    const top = find("table").getBoundingClientRect().top;
    if (top < 0) scrollBy({ top, behavior: "instant" });
  }

  #clearFilter(): void {
    this.#filterText = "";
    this.#filterInput.value = "";
  }

  #showAll(): void {
    this.#clearFilter();
    this.#chooseTag(undefined);
    this.#filterInput.focus();
  }

  #put(plants: readonly Plant[]): void {
    for (const garden of [this.#all, this.#shown]) garden.put(plants);
    this.#draw();
  }

  #showAdded(plant: Plant): void {
    this.#put([plant]);
    if (!this.#shown.select(this.#filterText).includes(plant)) {
      this.#clearFilter();
      this.#chooseTag(undefined);
    }
    this.#list.reveal(plant.id);
    notify(message`“${plant.name}” was added with the id ${String(plant.id)}.`);
  }

  #delete(plant: Plant): void {
    const place = this.#list.indexOf(plant.id);
    for (const garden of [this.#all, this.#shown]) garden.remove(plant.id);
    this.#draw();
    if (!this.#list.focus(place)) this.#filterInput.focus();
    this.#deletions.start(plant);
  }

  #restore(plants: readonly Plant[]): void {
    this.#put(plants);
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
      this.#put([plant]);
      if (this.#handle(error)) return false;
      const outcome = refusal ? "was not deleted" : "may not have been deleted";
      notify(message`“${plant.name}” ${outcome}. ${describeError(error)}`, "trouble");
      return false;
    }
  }

  #draw(): void {
    const garden = this.#shown;
    const { size } = garden;
    const shown = garden.select(this.#filterText);
    const canWrite = this.#me?.scope === "write";
    const hasMore = garden.next !== undefined;
    const isFirstLoad = garden.isLoading && size === 0;
    const isTrouble = garden.loadError !== undefined && size === 0;
    const isNothing = size === 0 && !hasMore && !isFirstLoad && !isTrouble;
    const isEmpty = isNothing && garden.tag === undefined;
    const isNoMatch = shown.length === 0 && (size > 0 || (isNothing && !isEmpty));
    this.#list.setPlants(shown, { canDelete: canWrite });
    this.#tags.draw(this.#all, garden);

    const title = hasMore ? `First ${count(size, "plant")}` : count(size, "plant");
    find("me").replaceChildren(this.#me ? describeMe(this.#me) : "");
    find("garden-title").textContent = size === 0 ? "Your garden" : title;
    find("garden-note").replaceChildren(...describeExtent(garden));
    find("filter-note").textContent = this.#filterText && this.#describeMatches(shown.length);
    find("no-match-title").textContent = hasMore ? "Nothing found yet" : "No plants found";
    find("no-match-note").textContent = this.#describeNoMatch();
    find("trouble-note").textContent = isTrouble ? describeError(garden.loadError) : "";
    find("empty-note").textContent = canWrite
      ? "This garden is empty. A plant needs a name; tag and id are optional."
      : "This garden is empty, and this token can only read.";
    show(find("table"), shown.length > 0);
    show(find("empty"), isEmpty);
    show(find("no-match"), isNoMatch);
    show(find("trouble"), isTrouble);
    show(find("loading"), isFirstLoad);
    document.body.classList.toggle("read-only", !canWrite);
    document.body.classList.toggle("bare", size === 0 && garden.tag === undefined);
    this.#drawEnd(garden, isNoMatch);
  }

  #describeMatches(shown: number): string {
    const all = count(this.#shown.size, "plant");
    const extent = this.#shown.next === undefined ? all : `the ${all} loaded so far`;
    return `${shown.toLocaleString("en")} of ${extent}`;
  }

  #describeNoMatch(): string {
    const { size, next, loadError } = this.#shown;
    if (size === 0) return "No plant has this tag.";
    if (next === undefined) return "No name, tag or id matches.";
    return loadError === undefined ? "Loading the rest of your plants…" : "";
  }

  #drawEnd({ size, next, isLoading, loadError }: Garden, isNoMatch: boolean): void {
    const hasMore = next !== undefined;
    const hasFailed = loadError !== undefined && size > 0;
    const note = find("more-note");
    note.textContent = hasFailed
      ? `Couldn’t load more plants. ${describeError(loadError)}`
      : `Loading… ${count(size, "plant")} so far`;
    show(note, size > 0 && (hasFailed || (isLoading && !isNoMatch)));
    this.#moreButton.textContent = hasFailed ? "Try again" : "Load more";
    show(this.#moreButton, hasMore && !isLoading);
    // Not hidden while a page is loading: a click in progress would be lost.
    show(find("load-all"), hasMore && !(isLoading && this.#extent === "all"));
    // Observe again: an end that stays in view would not be reported twice.
    this.#end.disconnect();
    this.#end.observe(this.#moreButton);
  }
}

function describeMe({ user, garden, scope, expiresAt }: Me): Node {
  const access = scope === "write" ? "read and write" : "read only";
  const format = { dateStyle: "long", timeStyle: "short" } as const;
  const expiry = expiresAt
    ? `expires ${new Date(expiresAt).toLocaleString("en", format)}`
    : "never expires";
  return message`${user} · garden ${garden} · ${access} · ${expiry}`;
}

/** Which plants the title counts. */
function describeExtent(garden: Garden): (Node | string)[] {
  const parts: (Node | string)[] = [];
  if (garden.tag === "") parts.push("without a tag");
  else if (garden.tag !== undefined) parts.push(message`tagged “${garden.tag}”`);
  if (garden.next !== undefined) parts.push("more as you scroll");
  const tags = garden.countTags().filter(([tag]) => tag !== "").length;
  if (garden.tag === undefined && tags > 0) parts.push(count(tags, "tag"));
  return parts.flatMap((part, index) => (index === 0 ? [part] : [" · ", part]));
}

/** Single keys, while nothing is being typed. People can turn them off, as some need to. */
function listenForShortcuts(actions: Readonly<Record<string, () => void>>): void {
  const areOn = find<HTMLInputElement>("use-shortcuts");
  document.addEventListener("keydown", (event) => {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    const isTyping = target instanceof HTMLInputElement && target.type !== "checkbox";
    const isBehindDialog = document.querySelector("dialog[open]") !== null;
    const action = actions[key];
    if (!action || isTyping || isBehindDialog || !areOn.checked || altKey || ctrlKey || metaKey)
      return;
    event.preventDefault();
    action();
  });
}
