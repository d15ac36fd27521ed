/** The row that is being edited: its plant, what is typed, and what has to be decided first. */
import { batch, signal } from "@preact/signals";
import { go } from "./address.ts";
import { Conflict, editedFields, isSame, type Plant, type PlantEvent } from "./api.ts";
import { Form } from "./form.tsx";
import type { Garden } from "./garden.ts";
import { message, notify, Task, warn } from "./message.ts";
import { describeVerb, describeWho } from "./words.ts";

/** What somebody has to decide before the plant can be saved, deleted or left. */
export type Finding =
  /** Going on would lose what was typed. `next` is the plant that was asked for instead. */
  | { readonly kind: "unsaved"; readonly next: bigint | undefined }
  /** Somebody else changed it. Saving or deleting now means what it is `after` that. */
  | {
      readonly kind: "changed";
      readonly event: PlantEvent | undefined;
      readonly before: Plant;
      readonly after: Plant;
      readonly about: "save" | "delete";
    }
  | { readonly kind: "deleted"; readonly event: PlantEvent | undefined };

interface Editing {
  /** What the plant is without what is typed. */
  readonly base: Plant;
  readonly finding?: Finding | undefined;
}

const retry = "It may have been saved all the same. It’s safe to save again.";

export class Editor {
  readonly editing = signal<Editing | undefined>();
  readonly form = new Form("edit");
  readonly deleting = new Task();
  /** Which field gets the focus: the one that was clicked. */
  firstField: "name" | "tag" = "name";
  /** The plant that the address asks for. It may still be on its way. */
  #id: bigint | undefined;

  constructor(readonly garden: Garden) {}

  get isTouched(): boolean {
    const base = this.editing.value?.base;
    return base !== undefined && this.garden.canWrite.value && !isSame(this.#read(base), base);
  }

  /** Follows the address. Edits what the page knows at once, and then what the service has. */
  async open(id: bigint | undefined): Promise<void> {
    if (id === this.#id) return;
    const current = this.editing.value;
    if (current && this.isTouched) {
      this.editing.value = { base: current.base, finding: { kind: "unsaved", next: id } };
      return go({ plant: current.base.id }, false);
    }
    this.#id = id;
    const known = id === undefined ? undefined : this.garden.list.value.find(id);
    if (known) this.#edit(known);
    else this.editing.value = undefined;
    if (id === undefined) return;
    try {
      const plant = await this.garden.api.find(id);
      if (this.#id === id) await this.#showRead(id, known, plant);
    } catch (error) {
      // What the page knows can be edited: saving compares it with what the service has.
      if (this.#id !== id || known) return;
      warn(`Plant ${id} couldn’t be loaded.`, error);
      this.close();
    }
  }

  async #showRead(id: bigint, known: Plant | undefined, plant: Plant | undefined): Promise<void> {
    this.garden.showRead(id, plant);
    if (!known && !plant) {
      notify(`There is no plant ${id}.`, true);
      return this.close();
    }
    if (!plant) {
      const event = await this.#findEvent(id, "plant.deleted");
      if (this.editing.value?.base.id === id) this.#ask({ kind: "deleted", event });
    } else if (!known || (!isSame(plant, known) && !this.isTouched)) this.#edit(plant);
  }

  #edit({ id, name, tag }: Plant): void {
    batch(() => {
      this.form.reset({ name, tag });
      this.editing.value = { base: { id, name, tag } };
    });
  }

  #ask(finding: Finding): void {
    const { editing } = this;
    if (editing.value) editing.value = { base: editing.value.base, finding };
  }

  /** Shows what others do to the plant, unless somebody is typing. */
  follow(events: readonly PlantEvent[]): void {
    const base = this.editing.value?.base;
    const event = events.findLast(({ plant }) => plant.id === base?.id);
    if (!base || !event) return;
    const isBack = this.editing.value?.finding?.kind === "deleted";
    if (event.type === "plant.deleted") this.#ask({ kind: "deleted", event });
    else if (!this.isTouched && (isBack || !isSame(event.plant, base))) this.#edit(event.plant);
    else if (isBack) this.editing.value = { base };
  }

  close(): void {
    const id = this.#id;
    if (id === undefined) return;
    batch(() => {
      this.#id = undefined;
      this.editing.value = undefined;
      this.garden.target.value = { id, isFocused: true };
    });
    go({ plant: undefined });
  }

  /** Asks first if something typed would be lost. */
  leave(): void {
    if (this.editing.value?.finding) this.resume();
    else if (this.isTouched) this.#ask({ kind: "unsaved", next: undefined });
    else this.close();
  }

  /** Drops what was typed, and goes where the page was asked to go. */
  discard(): void {
    const finding = this.editing.value?.finding;
    const next = finding?.kind === "unsaved" ? finding.next : undefined;
    if (next === undefined) this.close();
    else {
      this.editing.value = undefined;
      go({ plant: next }, false);
    }
  }

  /** Goes back to the fields. */
  resume(): void {
    const { editing } = this;
    if (!editing.value) return;
    editing.value = { base: editing.value.base };
    this.form.focusOn("name");
  }

  async save(): Promise<void> {
    const base = this.editing.value?.base;
    if (!base) return;
    const mine = this.#read(base);
    if (isSame(mine, base)) return this.close();
    try {
      const saved = await this.garden.api.save(base, mine);
      if (this.#id === base.id) this.close();
      const more = isSame(saved, mine) ? "" : " Somebody else’s change is in it, too.";
      // Undoing it leaves alone what somebody else has changed.
      const before = { ...saved, ...pickChanged(base, mine) };
      this.garden.showSaved(before, saved, message`“${saved.name}” was saved.${[more]}`);
    } catch (error) {
      if (this.#id !== base.id) warn(message`“${mine.name}” may not have been saved.`, error);
      else if (error instanceof Conflict) await this.#showConflict(base, mine, error, "save");
      else this.form.fail(error, retry);
    }
  }

  /** Deletes the plant if it is still what the page showed. Otherwise shows what it is now. */
  async delete(plant: Plant): Promise<void> {
    await this.deleting.run(async () => {
      try {
        await this.garden.api.deleteShown(plant);
        this.#forget(plant.id);
        this.garden.showDeleted([plant]);
      } catch (error) {
        if (error instanceof Conflict) await this.#showConflict(plant, plant, error, "delete");
        else warn(message`“${plant.name}” may not have been deleted.`, error);
      }
    });
  }

  /** Adds the plant that somebody else deleted, with the same id, and with what was typed. */
  async addAgain(): Promise<void> {
    const base = this.editing.value?.base;
    if (!base) return;
    const plant = this.#read(base);
    try {
      await this.garden.api.put(plant.id, plant, { ifNoneMatch: "*" });
      this.close();
      this.garden.showAdded(plant);
    } catch (error) {
      this.form.fail(error, "It may have been added all the same.");
    }
  }

  /** Closes the row of a plant that is gone. The caller says where the focus goes. */
  #forget(id: bigint): void {
    if (this.#id !== id) return;
    this.#id = undefined;
    this.editing.value = undefined;
    go({ plant: undefined });
  }

  /** From now on, saving or deleting means their version, and no later one. */
  async #showConflict(
    base: Plant,
    mine: Plant,
    conflict: Conflict,
    about: "save" | "delete",
  ): Promise<void> {
    const { id, name } = base;
    const { theirs } = conflict;
    const opened = this.#id;
    const event = await this.#findEvent(id, theirs ? "plant.replaced" : "plant.deleted");
    this.garden.showRead(id, theirs);
    // Another row was opened meanwhile, or this one was left.
    if (this.#id !== opened && (theirs || about === "save")) {
      return warn(
        message`“${name}” was not ${[about === "save" ? "saved" : "deleted"]}.`,
        conflict,
      );
    }
    if (!theirs && about === "delete") {
      this.#forget(id);
      this.garden.target.value = { id, isFocused: true };
      return notify(message`“${name}” had already been deleted. ${describeWho(event, "deleted")}`);
    }
    if (!theirs) return this.#ask({ kind: "deleted", event });
    const untouched = editedFields.filter((field) => mine[field] === base[field]);
    batch(() => {
      this.#id = id;
      if (about === "delete") this.form.reset({ name: theirs.name, tag: theirs.tag });
      for (const field of untouched) this.form.set({ [field]: theirs[field] });
      const after = { id, name: theirs.name, tag: theirs.tag };
      const finding: Finding = { kind: "changed", event, before: base, after, about };
      this.editing.value = { base: after, finding };
    });
    go({ plant: id });
  }

  /** The last event of the plant, if it's of this type. Absent if it was too long ago. */
  async #findEvent(id: bigint, type: PlantEvent["type"]): Promise<PlantEvent | undefined> {
    const events = await this.garden.api.eventsBefore().catch(() => []);
    const last = events.findLast(({ plant }) => plant.id === id);
    return last?.type === type ? last : undefined;
  }

  #read({ id }: Plant): Plant {
    const { name, tag } = this.form.values.value;
    return { id, name, tag };
  }
}

/** The fields that were changed, as they were before. */
function pickChanged(before: Plant, after: Plant): Partial<Plant> {
  const changed = editedFields.filter((field) => before[field] !== after[field]);
  return Object.fromEntries(changed.map((field) => [field, before[field]]));
}

/** What the page says about a finding: a sentence, and what has changed. */
export function describeFinding(finding: Finding) {
  if (finding.kind === "unsaved") return { text: "What you typed isn’t saved.", changes: [] };
  const { event } = finding;
  if (finding.kind === "deleted") return { text: describeWho(event, "deleted"), changes: [] };
  const { before, after } = finding;
  const changes = editedFields
    .filter((field) => before[field] !== after[field])
    .map((field) => ({ field, before: before[field], after: after[field] }));
  return { text: describeWho(event, describeVerb(before, after)), changes };
}
