/**
 * What clients were promised of each plant, by the answers that they got, and whether a list keeps
 * it. It knows nothing of requests.
 */

/** Whether a plant is there: it must be, must not be, or the answers leave both open. */
export type Standing = "there" | "gone" | "open";

export interface ListedPlant {
  readonly id: string;
  readonly name: string;
  /** If it was asked for. */
  readonly tag?: string;
}

/** Ids beyond the integers that JSON.parse keeps stay exact as text. */
export function readList(text: string): ListedPlant[] {
  return JSON.parse(text.replace(/"id":(-?\d+)/g, '"id":"$1"'));
}

const tagCharactersMax = 100;

/**
 * Every plant is sent with the tag that belongs to its name, so that a list can be checked for it.
 * Their lengths differ, so that no page of the file is like another.
 */
export function tagOf(name: string): string {
  let sum = 0;
  for (const character of name) sum = sum * 31 + character.charCodeAt(0);
  return [...`🌱 of ${name}, `.repeat(tagCharactersMax)].slice(0, sum % tagCharactersMax).join("");
}

export class Ledger {
  /** By name, which no two plants share. */
  readonly #standings = new Map<string, Standing>();
  /** Of the plants whose id was answered. */
  readonly #ids = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #faults: string[] = [];

  /** How many plants there are of each standing. */
  get counts(): Record<Standing, number> {
    const counts = { there: 0, gone: 0, open: 0 };
    for (const standing of this.#standings.values()) counts[standing]++;
    return counts;
  }

  /** Absent if nobody ever tried to create it. */
  standingOf(name: string): Standing | undefined {
    return this.#standings.get(name);
  }

  note(name: string, standing: Standing): void {
    this.#standings.set(name, standing);
  }

  /** Keeps the id that was answered for a plant: always the same one, and nobody else's. */
  noteId(name: string, id: string): void {
    const [knownId, knownName] = [this.#ids.get(name), this.#names.get(id)];
    if (knownId !== undefined && knownId !== id)
      this.fault(`${name} got the ids ${knownId}, ${id}`);
    if (knownName !== undefined && knownName !== name) {
      this.fault(`${name} and ${knownName} both got the id ${id}`);
    }
    this.#ids.set(name, id);
    this.#names.set(id, name);
  }

  /** What must not happen whatever the list says. */
  fault(text: string): void {
    this.#faults.push(text);
  }

  /** Every promise that is not kept, in words; empty when all are. */
  audit(plants: readonly ListedPlant[]): string[] {
    const found = Map.groupBy(plants, ({ name }) => name);
    const faults = [...this.#faults];
    for (const [name, standing] of this.#standings) {
      const [plant, ...others] = found.get(name) ?? [];
      if (plant === undefined && standing === "there") faults.push(`lost: ${name}`);
      if (plant !== undefined && standing === "gone") faults.push(`back again: ${name}`);
      if (others.length > 0) faults.push(`duplicated: ${name}`);
      if (plant?.tag !== undefined && plant.tag !== tagOf(name)) faults.push(`changed: ${name}`);
      const id = this.#ids.get(name);
      if (plant !== undefined && id !== undefined && id !== plant.id) {
        faults.push(`${name} has the id ${plant.id}, not ${id}`);
      }
    }
    for (const name of found.keys()) {
      if (!this.#standings.has(name)) faults.push(`never sent: ${name}`);
    }
    return faults;
  }
}
