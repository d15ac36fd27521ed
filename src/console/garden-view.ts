/** The page of an open garden: loads plants, shows them, and keeps up with what changes them. */

import { renderCount } from "../plant-file/words.ts";
import { AddForm } from "./add-form.ts";
import {
  type Api,
  describeError,
  largePageSize,
  type Me,
  type Opening,
  type Plant,
  type PlantDraft,
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
import { Garden } from "./garden.ts";
import { describeLoaded, drawWords } from "./garden-words.ts";
import { ListView } from "./list-view.ts";
import { PlantCard } from "./plant-card.ts";
import { readTagFromAddress, TagsView, writeTagToAddress } from "./tags-view.ts";
import { Transfers } from "./transfers.ts";

/** The next page is loaded when the end of the list is this close to the window. */
const loadAheadPixels = 1_600;

export class GardenView {
  readonly #onExpired: () => void;
  readonly #filterInput = find<HTMLInputElement>("filter");
  readonly #moreButton = find("load-more");
  readonly #card = new PlantCard({
    api: () => this.#openApi(),
    onRead: (id, plant) => (plant ? this.#put([plant], 0) : this.#remove(id)),
    onSaved: (plant) => this.#showSaved(plant),
    onClosed: (id) => {
      // The row that opened it may have been redrawn or removed.
      const isFocused = this.#list.focus(this.#list.indexOf(id), "opener");
      if (!isFocused) this.#filterInput.focus();
    },
    onError: (error) => this.#handle(error),
  });
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
    create: (draft, key) => this.#create(draft, key),
    onAdded: (plant) => this.#showAdded(plant),
    onError: (error) => this.#handle(error),
  });
  readonly #transfers = new Transfers({
    api: () => this.#openApi(),
    tag: () => this.#shown.tag,
    onImporting: () => this.#deletions.finish(),
    onChanged: () => void this.#refresh(),
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
  /** Whether the first page of all plants is here. */
  #isOpened = false;
  #filterText = "";
  #refreshes = 0;

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired;
    this.#filterInput.addEventListener("input", () => this.#setFilterText(this.#filterInput.value));
    this.#filterInput.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      if (this.#filterText !== "" || this.#shown.tag !== undefined) this.#showAll();
      else this.#filterInput.blur();
    });
    find("clear-filter").addEventListener("click", () => this.#showAll());
    find("refresh").addEventListener("click", () => void this.#refresh());
    find("first-add").addEventListener("click", () => this.#add.open());
    find("retry").addEventListener("click", () => void this.#load());
    this.#moreButton.addEventListener("click", () => void this.#load());
    find("notice-close").addEventListener("click", hideNotice);
    listenForShortcuts({
      "/": () => this.#filterInput.focus(),
      n: () => this.#me?.scope === "write" && this.#add.open(),
      r: () => void this.#refresh(),
      z: () => this.#deletions.undo(),
    });
  }

  /** Loads the first page unless it is given. */
  open(api: Api, opening?: Opening): void {
    this.#api = api;
    if (opening) this.#begin(opening);
    else void this.#load();
    find("garden-title").focus();
  }

  #begin({ me, first }: Opening): void {
    this.#me = me;
    this.#all.addPage(first);
    this.#all.stored = me.plants - this.#deletions.pendingIds.size;
    this.#all.isLoading = false;
    this.#isOpened = true;
    const tag = readTagFromAddress();
    this.#chooseTag(tag);
  }

  /** Reloads the garden. The old list stays until the new one is here. */
  async #refresh(): Promise<void> {
    const api = this.#api;
    const number = ++this.#refreshes;
    const isLatest = () => api !== undefined && api === this.#api && number === this.#refreshes;
    const before = [...this.#deletions.pendingIds];
    try {
      const opening = await api?.open();
      if (!opening || !isLatest()) return;
      // The response may still list plants that were deleted while it was on its way.
      const pending = [...before, ...this.#deletions.pendingIds];
      this.#all = Garden.ofAll(pending.filter((id) => this.#all.isRemoved(id)));
      this.#shown = this.#all;
      this.#begin(opening);
      announce(`Loaded ${describeLoaded(this.#all)}.`);
    } catch (error) {
      if (!isLatest() || this.#handle(error)) return;
      notify(message`The list couldn’t be refreshed. ${describeError(error)}`, "trouble");
    }
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

  /** A plant that is about to be deleted still has its id. */
  async #create(draft: PlantDraft, key: string): Promise<Plant> {
    const { id } = draft;
    if (id !== undefined && this.#deletions.pendingIds.has(BigInt(id))) {
      await this.#deletions.finish();
    }
    return this.#openApi().create(draft, key);
  }

  /** Loads the next page, and further ones for as long as a filter is set. */
  async #load(): Promise<void> {
    const garden = this.#shown;
    if (garden.isLoading) return;
    const api = this.#openApi();
    garden.isLoading = true;
    garden.loadError = undefined;
    this.#draw();
    try {
      if (!this.#isOpened) {
        const opening = await api.open();
        if (api === this.#api && garden === this.#all) this.#begin(opening);
        return;
      }
      const limit = this.#filterText === "" ? undefined : largePageSize;
      garden.addPage(await api.page(garden.next, garden.tag, limit));
    } catch (error) {
      garden.loadError = error;
      if (api === this.#api) this.#handle(error);
    } finally {
      garden.isLoading = false;
      if (garden === this.#shown) {
        this.#draw();
        if (!this.#loadRestIfFiltered()) this.#announceShown();
      }
    }
  }

  #announceShown(): void {
    if (this.#filterText !== "") announce(find("filter-note").textContent);
    else if (this.#shown.tag !== undefined) {
      announce(`${find("garden-title").textContent} ${find("garden-note").textContent}`);
    }
  }

  #loadAhead(): void {
    const { next, loadError } = this.#shown;
    if (next !== undefined && !loadError && this.#filterText === "") void this.#load();
  }

  /** Otherwise a filter would find only what happens to be loaded. */
  #loadRestIfFiltered(): boolean {
    const { next, loadError } = this.#shown;
    if (next === undefined || loadError || this.#filterText === "") return false;
    void this.#load();
    return true;
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
    this.#loadRestIfFiltered();
    this.#announceShown();
  }

  /** The service filters by tag, so this finds all plants of a tag in a garden of any size. */
  #chooseTag(tag: string | undefined): void {
    this.#shown = tag === undefined ? this.#all : this.#all.ofTag(tag);
    writeTagToAddress(tag);
    this.#scrollToTop();
    if (tag === undefined) this.#setFilterText(this.#filterText);
    else void this.#load();
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

  /** Shows plants that certainly exist, of which `added` are new to the garden. */
  #put(plants: readonly Plant[], added = plants.length): void {
    for (const garden of [this.#all, this.#shown]) garden.put(plants);
    this.#count(added);
    this.#draw();
  }

  #remove(id: bigint): void {
    for (const garden of [this.#all, this.#shown]) garden.remove(id);
    this.#count(-1);
    this.#draw();
  }

  #count(change: number): void {
    if (this.#all.stored !== undefined) this.#all.stored += change;
  }

  #showSaved(plant: Plant): void {
    this.#put([plant], 0);
    this.#list.reveal(plant.id);
    notify(message`“${plant.name}” was saved.`);
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
    this.#remove(plant.id);
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
    const plants = garden.select(this.#filterText);
    this.#list.setPlants(plants, { canDelete: this.#me?.scope === "write" });
    this.#tags.draw(this.#all, garden);
    const found = plants.length;
    drawWords(garden, { found, filterText: this.#filterText, me: this.#me });
    this.#drawEnd(garden);
  }

  #drawEnd({ size, next, isLoading, loadError }: Garden): void {
    const hasMore = next !== undefined;
    const hasFailed = loadError !== undefined && size > 0;
    const note = find("more-note");
    note.textContent = hasFailed
      ? `Couldn’t load more plants. ${describeError(loadError)}`
      : `Loading… ${renderCount(size, "plant")} so far`;
    // With a filter, the note above the list says so.
    show(note, size > 0 && (hasFailed || (isLoading && this.#filterText === "")));
    this.#moreButton.textContent = hasFailed ? "Try again" : "Load more";
    show(this.#moreButton, hasMore && !isLoading);
    // Observe again: an end that stays in view would not be reported twice.
    this.#end.disconnect();
    this.#end.observe(this.#moreButton);
  }
}
