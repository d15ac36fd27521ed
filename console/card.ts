/** One plant, to read, edit or delete. */
import { signal } from "@preact/signals";
import { go } from "./address.ts";
import {
  Conflict,
  describeError,
  editedFields,
  isSame,
  type Plant,
  type PlantEvent,
  type PlantField,
} from "./api.ts";
import { Form } from "./form.tsx";
import type { Garden } from "./garden.ts";
import { confirm, type Message, message, notify, Task, warn } from "./message.ts";
import { describeChange, describeVersion } from "./words.ts";

const retry = "It may have been saved all the same. It’s safe to save again.";

interface Shown {
  /** As the card last showed it. Absent until it is read, and after it was deleted. */
  readonly plant?: Plant | undefined;
  /** As it was before somebody else deleted it. It can be added again. */
  readonly lost?: Plant | undefined;
  readonly note?: Message;
  /** Whether somebody else has changed it, so that the same button now means their version. */
  readonly isChanged?: boolean;
  readonly isEditing?: boolean;
}

export class Card {
  /** Absent while the card is closed. */
  readonly id = signal<bigint | undefined>();
  readonly shown = signal<Shown>({});
  readonly form = new Form("edit");
  readonly deleting = new Task();

  constructor(readonly garden: Garden) {}

  /** Shows what the page knows at once, and then what the service has. */
  async show(id: bigint | undefined): Promise<void> {
    if (id === undefined) return this.close();
    if (id === this.id.value) return;
    const known = this.garden.list.value.find(id);
    this.shown.value = { plant: known };
    this.id.value = id;
    const next = await this.#read(id, known).catch(
      (error): Shown => ({ plant: known, note: describeError(error) }),
    );
    if (next && this.id.value === id && !this.shown.value.isEditing) this.shown.value = next;
  }

  /** What the card should show instead of what the page knew, if that differs. */
  async #read(id: bigint, known: Plant | undefined): Promise<Shown | undefined> {
    const plant = await this.garden.api.find(id);
    this.garden.showRead(id, plant);
    if (plant) return known && isSame(plant, known) ? undefined : { plant };
    const note = known ? await this.#explain(id, true) : `There is no plant ${id}.`;
    return { lost: known, note };
  }

  /** Shows what others changed, unless somebody is editing. */
  follow(events: readonly PlantEvent[]): void {
    const event = events.findLast(({ plant }) => plant.id === this.id.value);
    const { plant: before, isEditing } = this.shown.value;
    if (!event || !before || isEditing) return;
    if (event.type === "plant.deleted") {
      this.shown.value = { lost: before, note: describeChange(true, event) };
    } else if (!isSame(event.plant, before)) this.shown.value = { plant: event.plant };
  }

  close(id = this.id.value): void {
    if (id === undefined || this.id.value !== id) return;
    this.id.value = undefined;
    go({ plant: undefined });
    this.garden.target.value = { id, isFocused: true };
  }

  /** Asks first if something typed would be lost. */
  async leave(): Promise<void> {
    const { isEditing, plant, lost } = this.shown.value;
    const base = plant ?? lost;
    const isTouched = isEditing && base && !isSame(this.#readForm(base), base);
    const note = "What you typed isn’t saved.";
    if (!isTouched || (await confirm("Discard your changes?", note, "Discard"))) this.close();
  }

  /**
   * Deletes the plant if it is still what the page showed. Otherwise shows what it is now, and the
   * same button deletes that.
   */
  async delete(plant: Plant): Promise<void> {
    await this.deleting.run(async () => {
      try {
        await this.garden.api.deleteShown(plant);
        this.close(plant.id);
        this.garden.showDeleted([plant]);
      } catch (error) {
        if (error instanceof Conflict) await this.#showConflict(plant, error.theirs, false);
        else warn(message`“${plant.name}” may not have been deleted.`, error);
      }
    });
  }

  edit(): void {
    const { plant } = this.shown.value;
    if (!plant) return;
    const { name, tag } = plant;
    this.form.reset({ name, tag } satisfies Record<PlantField, string>);
    this.shown.value = { plant, isEditing: true };
    this.form.focusOn("name");
  }

  async save(): Promise<void> {
    const base = this.shown.value.plant;
    if (!base) return;
    const { id } = base;
    const mine = this.#readForm(base);
    if (isSame(mine, base)) return this.close(id);
    try {
      const saved = await this.garden.api.save(base, mine);
      this.close(id);
      const more = isSame(saved, mine) ? "" : " Somebody else’s change is in it, too.";
      this.garden.showStored(saved, message`“${saved.name}” was saved.${[more]}`);
    } catch (error) {
      if (this.id.value !== id) warn(message`“${mine.name}” may not have been saved.`, error);
      else if (!(error instanceof Conflict)) this.form.fail(error, retry);
      else {
        const { theirs } = error;
        const untouched = editedFields.filter((field) => mine[field] === base[field]);
        for (const field of theirs ? untouched : []) this.form.set({ [field]: theirs?.[field] });
        await this.#showConflict(base, theirs, true);
      }
    }
  }

  /** Adds the plant that somebody else deleted, with the same id, and with what was typed. */
  async addAgain(lost: Plant): Promise<void> {
    const { isEditing } = this.shown.value;
    const plant = isEditing ? this.#readForm(lost) : lost;
    try {
      await this.garden.api.put(plant.id, plant, { ifNoneMatch: "*" });
      this.close(plant.id);
      const text = message`“${plant.name}” was added with the id ${[plant.id]}.`;
      this.garden.showStored(plant, text);
    } catch (error) {
      const note = message`“${plant.name}” may not have been added. ${[describeError(error)]}`;
      this.shown.value = { ...this.shown.value, note };
    }
  }

  /** Who changed or deleted the plant. Nobody is named if it was too long ago. */
  async #explain(id: bigint, isGone: boolean): Promise<Message> {
    const events = await this.garden.api.eventsBefore().catch(() => []);
    return describeChange(
      isGone,
      events.findLast(({ plant }) => plant.id === id),
    );
  }

  /** Inputs drop line breaks. A field that nobody touched keeps its own. */
  #readForm(base: Plant): Plant {
    const typed = this.form.values.value;
    const read = (field: PlantField) =>
      typed[field] === base[field].replace(/[\r\n]/g, "") ? base[field] : typed[field];
    return { id: base.id, name: read("name"), tag: read("tag") };
  }

  /** From now on, saving or deleting means their version, and no later one. */
  async #showConflict(base: Plant, theirs: Plant | undefined, isEditing: boolean): Promise<void> {
    const { id, name } = base;
    this.garden.showRead(id, theirs);
    const who = await this.#explain(id, !theirs);
    if (!theirs && !isEditing) {
      this.close(id);
      return notify(message`“${name}” had already been deleted. ${[who]}`);
    }
    const lost = theirs ? undefined : base;
    const now = theirs
      ? message`It was ${describeVersion(base)}, and is ${describeVersion(theirs)} now.`
      : "Your changes aren’t saved.";
    this.shown.value = { plant: theirs, lost, note: [who, " ", now], isEditing, isChanged: true };
    this.id.value = id;
    go({ plant: id });
  }
}
