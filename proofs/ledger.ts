/**
 * What responses promised to clients about each plant, and whether a list of plants keeps it. Names
 * are unique. A plant that was created alone with a key has its name as the key.
 */

/** `unknown`: a request is under way, or its response leaves open what happened. */
type State = "present" | "absent" | "unknown";

export interface Entry {
  readonly name: string;
  readonly state: State;
  /** Once it is known. */
  readonly id?: string | undefined;
  /**
   * What its tag may be, the last one confirmed first: several versions while the outcome of a put
   * is unknown. If it's missing, they stay the same. A create sends version 0.
   */
  readonly versions?: readonly number[] | undefined;
  /** The key that it was sent with, if any, and the id that was sent. */
  readonly keyed?: { readonly key: string; readonly id?: string | undefined };
}

/** A plant as it was sent. Without an id, the service assigns one. */
export interface NewPlant {
  readonly name: string;
  readonly id?: string | undefined;
}

/** Plants that are sent in one request, under one key. */
export interface NewBulk {
  readonly key: string;
  readonly plants: readonly NewPlant[];
}

export interface ListedPlant {
  readonly id: string;
  readonly name: string;
  readonly tag: string;
}

interface Promised extends Entry {
  readonly versions: readonly number[];
  /** A response said that it was created. */
  readonly wasPresent: boolean;
}

/** A response said what happened. */
export function isSettled({ state, versions = [0] }: Entry): boolean {
  return state !== "unknown" && versions.length === 1;
}

/** Ids as text: JSON.parse would round the large ones. */
export function readList<Item = ListedPlant>(text: string): Item[] {
  return JSON.parse(text.replace(/"id":(-?\d+)/g, '"id":"$1"'));
}

/**
 * The tag that a plant is sent with. It follows from the name and version, so that an audit can
 * check it. Its length varies, so that no two pages of the file are alike.
 */
export function tagOf(name: string, version = 0): string {
  const head = version === 0 ? "" : `${version} `;
  // The names of a bulk have a slash. Short tags let more of its plants fit into a body.
  const charactersMax = (name.includes("/") ? 40 : 100) - head.length;
  const length = Bun.hash.crc32(`${head}${name}`) % charactersMax;
  return head + `☘ of ${name}, `.repeat(charactersMax).slice(0, length);
}

export class Ledger {
  /** What must not happen, whatever a list says. */
  readonly faults: string[] = [];
  readonly #plants = new Map<string, Promised>();
  readonly #nameOfId = new Map<string, string>();
  /** In the order in which they were noted. */
  readonly entries: Promised[] = [];

  constructor(readonly onNote: (entries: readonly Entry[]) => void = () => {}) {}

  /** How many plants were confirmed as created, as replaced, and as deleted. */
  get promises(): number {
    const created = [...this.#plants.values()].filter(({ wasPresent }) => wasPresent);
    const replaced = created.reduce((sum, { versions }) => sum + (versions[0] ?? 0), 0);
    return created.length + replaced + created.filter(({ state }) => state === "absent").length;
  }

  /** The requests that were sent with a key. */
  get keyed() {
    const sent = [...this.#plants.values()].filter(({ keyed }) => keyed);
    return [...Map.groupBy(sent, ({ keyed }) => keyed?.key ?? "")].map(([key, plants]) => ({
      key,
      plants: plants.map(({ name, keyed }) => ({ name, id: keyed?.id })),
      isBulk: plants[0]?.name !== key,
      isAnswered: plants.every(({ wasPresent }) => wasPresent),
    }));
  }

  find(name: string): Promised | undefined {
    return this.#plants.get(name);
  }

  /** What is sent, or confirmed, at the same moment. */
  note(...entries: readonly Entry[]): void {
    for (const entry of entries) {
      const { name, state } = entry;
      const before = this.#plants.get(name);
      const { id = before?.id, keyed = before?.keyed } = entry;
      const { versions = before?.versions ?? [0] } = entry;
      if (id !== undefined) this.#checkId(name, id, before?.id);
      const wasPresent = before?.wasPresent === true || state === "present";
      const promised = { name, state, id, versions, wasPresent, ...(keyed && { keyed }) };
      this.#plants.set(name, promised);
      this.entries.push(promised);
    }
    this.onNote(entries);
  }

  /** A plant keeps its id, and nobody else gets it. */
  #checkId(name: string, id: string, before: string | undefined): void {
    const owner = this.#nameOfId.get(id) ?? name;
    if (before !== undefined && before !== id) this.fault(`${name} got the ids ${before}, ${id}`);
    if (owner !== name) this.fault(`${name} and ${owner} both got the id ${id}`);
    this.#nameOfId.set(id, name);
  }

  fault(text: string): void {
    this.faults.push(text);
  }

  /** Every broken promise, where these plants are there; empty if there is none. */
  audit(plants: readonly ListedPlant[]): string[] {
    const listed = new Map(plants.map((plant) => [plant.name, plant]));
    const faults = [...this.faults];
    for (const plant of plants) {
      if (listed.get(plant.name) !== plant) faults.push(`duplicated: ${plant.name}`);
      if (!this.#plants.has(plant.name)) faults.push(`never sent: ${plant.name}`);
    }
    // The plants of a bulk are stored in order: where one is missing, so are all after it.
    const incomplete = new Set<string>();
    for (const { name, state, versions, id, keyed, wasPresent } of this.#plants.values()) {
      const plant = listed.get(name);
      if (keyed && state === "unknown" && !wasPresent) {
        if (!plant) incomplete.add(keyed.key);
        else if (incomplete.has(keyed.key)) faults.push(`stored before earlier plants: ${name}`);
      }
      if (!plant && state === "present") faults.push(`lost: ${name}`);
      if (!plant) continue;
      if (state === "absent") faults.push(`back again: ${name}`);
      if (id !== undefined && id !== plant.id)
        faults.push(`${name} has the id ${plant.id}, not ${id}`);
      if (!versions.some((version) => tagOf(name, version) === plant.tag)) {
        faults.push(`changed: ${name} to ${plant.tag}`);
      }
    }
    return faults;
  }
}
