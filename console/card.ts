/** One plant, to copy, edit or delete. */
import { signal } from "@preact/signals";
import {
  type Api,
  Conflict,
  describeError,
  editedFields,
  isSame,
  type Plant,
  type PlantEvent,
} from "./api.ts";
import { Form } from "./form.ts";
import type { Garden } from "./garden.ts";
import { confirm, type Message, message, notify } from "./message.ts";
import { describeChange } from "./words.ts";

type EditedField = (typeof editedFields)[number];
const retry = "It may have been saved all the same. It’s safe to save again.";

export class Card {
  readonly #api: Api;
  readonly #garden: Garden;
  /** Goes to a plant's card, or closes it. */
  readonly #go: (id: bigint | undefined) => void;
  /** Absent while the card is closed. */
  readonly id = signal<bigint | undefined>();
  /** The plant as the card last showed it. Absent until it is read, and after it was deleted. */
  readonly plant = signal<Plant | undefined>();
  /** As it was before somebody else deleted it. It can be added again. */
  readonly lost = signal<Plant | undefined>();
  readonly note = signal<Message>([]);
  readonly isEditing = signal(false);
  readonly form = new Form(editedFields);
  readonly isDeleting = signal(false);
  /** What somebody else made of the fields that were edited here. Absent without a conflict. */
  readonly theirs = signal<Partial<Pick<Plant, EditedField>> | undefined>();
  /** Whether Delete means a plant that somebody else has changed. */
  readonly isChanged = signal(false);

  constructor(api: Api, garden: Garden, go: (id: bigint | undefined) => void) {
    this.#api = api;
    this.#garden = garden;
    this.#go = go;
  }

  /** Shows what the page knows at once, and then what the service has. */
  async open(id: bigint): Promise<void> {
    if (id === this.id.value) return;
    const known = this.#garden.list.value.find(id);
    this.#show(known);
    this.id.value = id;
    const isShown = () => this.id.value === id && !this.isEditing.value;
    try {
      const plant = await this.#api.find(id);
      this.#garden.showRead(id, plant);
      if (plant) {
        if (isShown() && (!known || !isSame(plant, known))) this.#show(plant);
      } else {
        const note = known ? await this.#explain(id, true) : [`There is no plant ${id}.`];
        if (isShown()) this.#show(undefined, note, known);
      }
    } catch (error) {
      if (isShown()) this.#show(known, [describeError(error)]);
    }
  }

  /** Shows what others changed, unless somebody is editing. */
  follow(events: readonly PlantEvent[]): void {
    const event = events.findLast(({ plant }) => plant.id === this.id.value);
    const before = this.plant.value;
    if (!event || !before || this.isEditing.value) return;
    if (event.type === "plant.deleted") this.#show(undefined, describeChange(true, event), before);
    else if (!isSame(event.plant, before)) this.#show(event.plant);
  }

  close(): void {
    const id = this.id.value;
    if (id === undefined) return;
    this.id.value = undefined;
    this.#go(undefined);
    this.#garden.target.value = { id, isFocused: true };
  }

  /** Asks first if something typed would be lost. */
  async leave(): Promise<void> {
    const note = "What you typed isn’t saved.";
    if (!this.#isTouched || (await confirm("Discard your changes?", note, "Discard"))) this.close();
  }

  /**
   * Deletes the plant if it is still what the page showed. Otherwise shows what it is now, and the
   * same button deletes that.
   */
  async delete(plant: Plant): Promise<void> {
    if (this.isDeleting.value) return;
    this.isDeleting.value = true;
    try {
      await this.#api.deleteShown(plant);
      this.#closeIf(plant.id);
      this.#garden.showDeleted([plant]);
    } catch (error) {
      if (error instanceof Conflict) await this.#explainConflict(plant, error);
      else {
        const why = describeError(error);
        notify(message`“${plant.name}” may not have been deleted. ${why}`, "trouble");
      }
    } finally {
      this.isDeleting.value = false;
    }
  }

  edit(): void {
    const plant = this.plant.value;
    if (!plant) return;
    this.form.reset(plant as Pick<Plant, EditedField>);
    this.note.value = [];
    this.theirs.value = undefined;
    this.isEditing.value = true;
    this.form.focusOn("name");
  }

  async save(): Promise<void> {
    const base = this.plant.value;
    // Enter submits the form even if its button is hidden.
    if (!base) return;
    const { id } = base;
    const mine = { id, name: this.#typed("name"), tag: this.#typed("tag") };
    this.form.clearErrors();
    try {
      const saved = await this.#api.save(base, mine);
      this.#closeIf(id);
      this.#garden.showSaved(saved, !isSame(saved, mine));
    } catch (error) {
      if (this.id.value !== id) {
        const why = describeError(error);
        notify(message`“${mine.name}” may not have been saved. ${why}`, "trouble");
      } else if (error instanceof Conflict) {
        this.#garden.showRead(id, error.theirs);
        this.#showConflict(base, mine, error.theirs, await this.#explain(id, !error.theirs));
      } else this.form.fail(error, retry);
    }
  }

  /** Adds the plant that somebody else deleted, with the same id, and with what was typed. */
  async addAgain(): Promise<void> {
    const lost = this.lost.value;
    if (!lost) return;
    const { id } = lost;
    const mine = this.isEditing.value ? this.form.values.value : lost;
    const plant = { id, name: mine.name, tag: mine.tag };
    try {
      await this.#api.put(id, plant, { ifNoneMatch: "*" });
      this.#closeIf(id);
      this.#garden.showAdded(plant);
    } catch (error) {
      this.note.value = message`“${plant.name}” may not have been added. ${describeError(error)}`;
    }
  }

  get #isTouched(): boolean {
    const { plant, lost } = this;
    const base = plant.value ?? lost.value;
    return (
      this.isEditing.value && editedFields.some((field) => this.#typed(field) !== base?.[field])
    );
  }

  /** Who changed or deleted the plant. */
  async #explain(id: bigint, isGone: boolean): Promise<Message> {
    return describeChange(isGone, await this.#api.lastChange(id));
  }

  async #explainConflict(plant: Plant, { theirs }: Conflict): Promise<void> {
    this.#garden.showRead(plant.id, theirs);
    const note = await this.#explain(plant.id, !theirs);
    if (!theirs) {
      this.#closeIf(plant.id);
      return notify(message`“${plant.name}” had already been deleted. ${note}`);
    }
    const tag = plant.tag === "" ? [] : message`, tagged “${plant.tag}”`;
    this.#show(theirs, message`${note} It was “${plant.name}”${tag}.`);
    this.isChanged.value = true;
    this.id.value = plant.id;
    this.#go(plant.id);
  }

  #closeIf(id: bigint): void {
    if (this.id.value === id) this.close();
  }

  #show(plant: Plant | undefined, note: Message = [], lost?: Plant): void {
    this.plant.value = plant;
    this.lost.value = lost;
    this.note.value = note;
    this.isChanged.value = this.isEditing.value = false;
    this.theirs.value = undefined;
  }

  /** Inputs drop line breaks. A field that nobody touched keeps its own. */
  #typed(field: EditedField): string {
    const value = this.form.values.value[field];
    const before = (this.plant.value ?? this.lost.value)?.[field] ?? "";
    return value === before.replace(/[\r\n]/g, "") ? before : value;
  }

  /** The next save replaces their version, and no later one. What only they changed stays. */
  #showConflict(base: Plant, mine: Plant, theirs: Plant | undefined, note: Message): void {
    this.plant.value = theirs;
    this.lost.value = theirs ? undefined : base;
    const isOther = (field: EditedField) =>
      mine[field] !== base[field] && mine[field] !== theirs?.[field];
    const others = theirs ? editedFields.filter(isOther) : [];
    this.theirs.value = Object.fromEntries(others.map((field) => [field, theirs?.[field]]));
    for (const field of editedFields) {
      if (theirs && mine[field] === base[field]) this.form.set(field, theirs[field]);
    }
    const question = theirs ? "Which version should stay?" : "Your changes aren’t saved.";
    this.note.value = [...note, ` ${question}`];
  }
}
