/**
 * What clients were promised about each plant, by the responses that they got, and whether a list
 * keeps these promises. Names are unique, and a plant's idempotency key, if any, is its name, or
 * that of the batch that it was sent in.
 */
import { placeOfKey, toBytes } from "../../src/storage/keys.ts";

/** `unknown`: a request is under way, or its response leaves open what happened. */
export type State = "present" | "absent" | "unknown";

export interface Entry {
  readonly name: string;
  readonly state: State;
  /** Once it is known: as chosen by the client, or as in the response. */
  readonly id?: string | undefined;
  /** The body that was sent with a key. */
  readonly keyedBody?: string | undefined;
  /** Its place in a batch, if it was sent in one. */
  readonly batch?: BatchLine | undefined;
}

export interface BatchLine {
  readonly key: string;
  readonly line: number;
}

export interface KeyedRequest {
  readonly name: string;
  readonly body: string;
}

export interface Batch {
  readonly key: string;
  readonly lines: readonly KeyedRequest[];
  readonly isAnswered: boolean;
}

export interface ListedPlant {
  readonly id: string;
  readonly name: string;
  /** Absent if the list was not asked for tags. */
  readonly tag?: string;
}

interface Promised extends Entry {
  /** A response said that it was created. */
  readonly wasPresent: boolean;
}

/** Ids as text: JSON.parse would round the large ones. */
export function readList(text: string): ListedPlant[] {
  return JSON.parse(text.replace(/"id":(-?\d+)/g, '"id":"$1"'));
}

const tagCharactersMax = 100;
/** In a batch, so that the most lines fit into the largest body. Their names contain a slash. */
const lineTagCharactersMax = 40;

/**
 * The tag that a plant is sent with. It follows from the name, so that lists can be checked for it,
 * and its length varies, so that no two pages of the file are alike.
 */
export function tagOf(name: string): string {
  let sum = 0;
  for (const character of name) sum = sum * 31 + character.charCodeAt(0);
  const phrase = [...`🌱 of ${name}, `];
  return Array.from(
    { length: sum % (name.includes("/") ? lineTagCharactersMax : tagCharactersMax) },
    (_, index) => phrase[index % phrase.length],
  ).join("");
}

export class Ledger {
  /** What must not happen, whatever a list says. */
  readonly faults: string[] = [];
  readonly #plants = new Map<string, Promised>();
  readonly #nameOfId = new Map<string, string>();
  readonly #entries: Entry[] = [];
  readonly #onNote: (entries: readonly Entry[]) => void;

  constructor(onNote: (entries: readonly Entry[]) => void = () => {}) {
    this.#onNote = onNote;
  }

  get counts(): Record<State, number> {
    const counts = { present: 0, absent: 0, unknown: 0 };
    for (const { state } of this.#plants.values()) counts[state]++;
    return counts;
  }

  /** This moment, as the number of entries so far. */
  get moment(): number {
    return this.#entries.length;
  }

  /** How many plants were confirmed as created, and how many of them as deleted. */
  get promises(): number {
    const created = [...this.#plants.values()].filter(({ wasPresent }) => wasPresent);
    return created.length + created.filter(({ state }) => state === "absent").length;
  }

  get highestId(): bigint {
    return this.#nameOfId.keys().reduce((max, id) => (BigInt(id) > max ? BigInt(id) : max), 0n);
  }

  /** The creates that had a key of their own. */
  get keyed(): KeyedRequest[] {
    return [...this.#plants.values()].flatMap(({ name, keyedBody: body, batch }) =>
      body === undefined || batch ? [] : [{ name, body }],
    );
  }

  get batches(): Batch[] {
    const batches = new Map<string, Batch & { readonly lines: KeyedRequest[] }>();
    for (const { name, keyedBody: body = "", batch, wasPresent } of this.#plants.values()) {
      if (batch === undefined) continue;
      const { key, line } = batch;
      const known = batches.get(key) ?? { key, lines: [], isAnswered: wasPresent };
      known.lines[line] = { name, body };
      batches.set(key, known);
    }
    return [...batches.values()];
  }

  stateOf(name: string): State | undefined {
    return this.#plants.get(name)?.state;
  }

  idOf(name: string): string | undefined {
    return this.#plants.get(name)?.id;
  }

  /** A response said that it was created, whatever happened later. */
  wasPresent(name: string): boolean {
    return this.#plants.get(name)?.wasPresent === true;
  }

  note(entry: Entry): void {
    this.noteAll([entry]);
  }

  /** What is sent, or confirmed, at the same moment. */
  noteAll(entries: readonly Entry[]): void {
    for (const entry of entries) {
      const { name, state } = entry;
      const before = this.#plants.get(name);
      const { id = before?.id, keyedBody = before?.keyedBody, batch = before?.batch } = entry;
      if (id !== undefined) this.#checkId(name, id, before?.id);
      const wasPresent = before?.wasPresent === true || state === "present";
      this.#plants.set(name, { name, state, id, keyedBody, batch, wasPresent });
      this.#entries.push(entry);
    }
    this.#onNote(entries);
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

  /** Every broken promise; empty if there is none. */
  audit(plants: readonly ListedPlant[]): string[] {
    const listed = Map.groupBy(plants, ({ name }) => name);
    const faults = [...this.faults, ...this.#auditFields(plants)];
    for (const { name, state } of this.#plants.values()) {
      const count = listed.get(name)?.length ?? 0;
      if (count === 0 && state === "present") faults.push(`lost: ${name}`);
      if (count > 0 && state === "absent") faults.push(`back again: ${name}`);
      if (count > 1) faults.push(`duplicated: ${name}`);
    }
    for (const name of listed.keys()) {
      if (!this.#plants.has(name)) faults.push(`never sent: ${name}`);
    }
    return [...faults, ...this.#auditOrder(listed)];
  }

  /** The lines of a batch are stored in their order: where one is missing, so are all after it. */
  #auditOrder(listed: ReadonlyMap<string, unknown>): string[] {
    const incomplete = new Set<string>();
    const faults: string[] = [];
    // The plants of a batch are in the order in which they were sent.
    for (const { name, batch, state } of this.#plants.values()) {
      if (batch === undefined || state !== "unknown" || this.wasPresent(name)) continue;
      if (!listed.has(name)) incomplete.add(batch.key);
      else if (incomplete.has(batch.key)) faults.push(`stored before earlier lines: ${name}`);
    }
    return faults;
  }

  #auditFields(plants: readonly ListedPlant[]): string[] {
    return plants.flatMap(({ name, id, tag = tagOf(name) }) => {
      const known = this.#plants.get(name)?.id ?? id;
      const faults = known === id ? [] : [`${name} has the id ${id}, not ${known}`];
      return tag === tagOf(name) ? faults : [...faults, `changed: ${name}`];
    });
  }

  /** A key is stored with its plant, or neither is. `keys` maps what `keyOf` returns to an id. */
  auditKeys(plants: readonly ListedPlant[], keys: ReadonlyMap<string, string>): string[] {
    const listed = new Map(plants.map(({ name, id }) => [name, id]));
    const sent = new Set<string>();
    const faults: string[] = [];
    for (const { name, id, keyedBody, batch, wasPresent } of this.#plants.values()) {
      if (keyedBody === undefined) continue;
      const key = keyOf(name, batch);
      sent.add(key);
      const [stored, listedId] = [keys.get(key), listed.get(name)];
      const isDue = listedId !== undefined || wasPresent;
      if (stored === undefined && isDue) faults.push(`key lost: ${name}`);
      if (stored !== undefined && (!isDue || stored !== (listedId ?? id))) {
        faults.push(`key without its plant: ${name}`);
      }
    }
    for (const key of keys.keys()) if (!sent.has(key)) faults.push(`never sent: key ${key}`);
    return faults;
  }

  /**
   * Empty if the list is what may have been stored at one moment between `from` and `to`. Otherwise
   * what is wrong at the moment that fits best.
   */
  auditMoment(plants: readonly ListedPlant[], from: number, to: number): string[] {
    const listed = new Set(plants.map(({ name }) => name));
    const faults = this.#auditFields(plants);
    if (plants.length > listed.size) faults.push("a plant is listed twice");
    const wrong = new Map([...listed].map((name) => [name, "not sent yet"]));
    let best: [string, string][] | undefined;
    for (let moment = 0; moment <= to; moment++) {
      if (moment >= from && wrong.size < (best?.length ?? Number.POSITIVE_INFINITY)) {
        best = [...wrong];
      }
      const entry = this.#entries[moment];
      if (entry === undefined) break;
      const { name, state } = entry;
      wrong.delete(name);
      if (listed.has(name) && state === "absent") wrong.set(name, "deleted by then");
      if (!listed.has(name) && state === "present") wrong.set(name, "missing");
    }
    return [...faults, ...(best ?? []).map(([name, fault]) => `${name}: ${fault}`)];
  }
}

/** Where a key is stored: the hash of a row and, for the line of a batch, a place in that row. */
export function keyOf(name: string, batch?: BatchLine): string {
  const { row, entry } = placeOfKey(batch ?? { key: name });
  return `${toBytes(row).toString("hex")}/${entry}`;
}
