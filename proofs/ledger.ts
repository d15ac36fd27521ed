/**
 * What clients were promised about each plant, by the responses that they got, and whether a list
 * keeps these promises. Names are unique, and a plant's idempotency key, if any, is its name, or
 * that of the bulk that it was sent in.
 */
/** `unknown`: a request is under way, or its response leaves open what happened. */
type State = "present" | "absent" | "unknown";

export interface Entry {
  readonly name: string;
  readonly state: State;
  /** Once it is known: as chosen by the client, or as in the response. */
  readonly id?: string | undefined;
  /**
   * What its tag may be, the last one confirmed first: one version, and more while puts are under
   * way or their outcome is unknown. Without it as before; a create sends version 0.
   */
  readonly versions?: readonly number[] | undefined;
  /** If it was sent with a key: that, its place in the bulk, and the id that was sent. */
  readonly keyed?: {
    readonly key: string;
    readonly index: number;
    readonly id?: string | undefined;
  };
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

interface KeyedRequest extends NewBulk {
  readonly plants: NewPlant[];
  readonly isBulk: boolean;
  readonly isAnswered: boolean;
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

const tagCharactersMax = 100;
/** For a bulk, whose names contain a slash: short, so that the most plants fit into a body. */
const bulkTagCharactersMax = 40;

/**
 * The tag that a plant is sent with. It follows from the name, so that lists can be checked for it,
 * and its length varies, so that no two pages of the file are alike.
 */
export function tagOf(name: string, version = 0): string {
  const head = version === 0 ? "" : `${version} `;
  let sum = version;
  for (const character of name) sum = sum * 31 + character.charCodeAt(0);
  const phrase = [...`🌱 of ${name}, `];
  const charactersMax = name.includes("/") ? bulkTagCharactersMax : tagCharactersMax;
  const rest = { length: sum % (charactersMax - head.length) };
  return head + Array.from(rest, (_, index) => phrase[index % phrase.length]).join("");
}

export class Ledger {
  /** What must not happen, whatever a list says. */
  readonly faults: string[] = [];
  readonly #plants = new Map<string, Promised>();
  readonly #nameOfId = new Map<string, string>();
  /** All so far, in the order in which they were noted. */
  readonly entries: Promised[] = [];

  constructor(readonly onNote: (entries: readonly Entry[]) => void = () => {}) {}

  /** How many plants were confirmed as created, as replaced, and as deleted. */
  get promises(): number {
    const created = [...this.#plants.values()].filter(({ wasPresent }) => wasPresent);
    const replaced = created.reduce((sum, { versions }) => sum + (versions[0] ?? 0), 0);
    return created.length + replaced + created.filter(({ state }) => state === "absent").length;
  }

  get highestId(): bigint {
    return this.#nameOfId.keys().reduce((max, id) => (BigInt(id) > max ? BigInt(id) : max), 0n);
  }

  /** All that was sent with a key. That of a plant alone is its name. */
  get keyed(): KeyedRequest[] {
    const sent = new Map<string, KeyedRequest>();
    for (const { name, keyed, wasPresent: isAnswered } of this.#plants.values()) {
      if (!keyed) continue;
      const { key, index, id } = keyed;
      const known = sent.get(key) ?? { key, plants: [], isBulk: key !== name, isAnswered };
      known.plants[index] = { name, id };
      sent.set(key, known);
    }
    return [...sent.values()];
  }

  find(name: string): Promised | undefined {
    return this.#plants.get(name);
  }

  note(entry: Entry): void {
    this.noteAll([entry]);
  }

  /** What is sent, or confirmed, at the same moment. */
  noteAll(entries: readonly Entry[]): void {
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
