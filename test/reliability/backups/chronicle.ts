/**
 * What clients were promised of each plant, one promise after the other, and whether a list is how
 * all plants were at one moment. It knows nothing of backups.
 */
import { Ledger, type ListedPlant, type Standing, tagOf } from "../ledger.ts";

export class Chronicle extends Ledger {
  readonly #notes: { readonly name: string; readonly standing: Standing }[] = [];
  readonly #ids = new Map<string, string>();
  /** What must not have happened, whatever a list says. */
  readonly faults: string[] = [];

  /** This moment, as the number of promises up to here. */
  get moment(): number {
    return this.#notes.length;
  }

  override note(name: string, standing: Standing): void {
    super.note(name, standing);
    this.#notes.push({ name, standing });
  }

  override noteId(name: string, id: string): void {
    super.noteId(name, id);
    this.#ids.set(name, id);
  }

  override fault(text: string): void {
    super.fault(text);
    this.faults.push(text);
  }

  /**
   * Empty if at one moment, not before `from` and not after `to`, every plant of the list was or
   * may have been there and every other one was not or may not have been. Else what is wrong at the
   * best moment.
   */
  auditMoment(plants: readonly ListedPlant[], from: number, to: number): string[] {
    const found = new Map(plants.map((plant) => [plant.name, plant]));
    const faults = plants.length > found.size ? ["a plant is there twice"] : [];
    for (const { name, id, tag = tagOf(name) } of plants) {
      const known = this.#ids.get(name) ?? id;
      if (known !== id) faults.push(`${name} has the id ${id}, not ${known}`);
      if (tag !== tagOf(name)) faults.push(`changed: ${name}`);
    }
    const wrong = new Map([...found.keys()].map((name) => [name, "not sent yet"]));
    let best: [string, string][] | undefined;
    for (let moment = 0; moment <= to; moment++) {
      if (moment >= from && wrong.size < (best?.length ?? Number.POSITIVE_INFINITY)) {
        best = [...wrong];
      }
      const note = this.#notes[moment];
      if (note === undefined) break;
      const { name, standing } = note;
      wrong.delete(name);
      if (found.has(name) && standing === "gone") wrong.set(name, "gone by then");
      if (!found.has(name) && standing === "there") wrong.set(name, "missing");
    }
    return [...faults, ...(best ?? []).map(([name, fault]) => `${name}: ${fault}`)];
  }
}
