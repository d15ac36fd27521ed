/**
 * What the service owes its clients at a moment: follows requests and answers, and audits what a
 * garden holds. It knows nothing of disks.
 */

/** What is noted among the calls of the service. */
export type Note =
  | { readonly kind: "place"; readonly root: string; readonly database: string }
  | { readonly kind: "token"; readonly garden: string; readonly token: string }
  | {
      readonly kind: "sent";
      readonly number: number;
      readonly garden: string;
      readonly request: string;
      readonly body?: string | undefined;
      readonly key?: string | undefined;
    }
  | {
      readonly kind: "answered";
      readonly number: number;
      readonly status: number;
      readonly location?: string | undefined;
    };

type Sent = Extract<Note, { kind: "sent" }>;

/** A plant that somebody asked for, and how far that has come. */
export interface Owed {
  readonly garden: string;
  readonly name: string;
  readonly tag: string;
  readonly body: string;
  readonly key: string | undefined;
  /** As it was chosen or answered. */
  id: number | undefined;
  isCreated: boolean;
  isDeletionSent: boolean;
  isDeleted: boolean;
}

export interface Held {
  readonly id: number;
  readonly name: string;
  readonly tag: string;
}

export class Account {
  /** By garden: those that were handed out. */
  readonly tokens = new Map<string, string>();
  readonly #sent = new Map<number, Sent>();
  /** By name, which no two plants share. */
  readonly #owed = new Map<string, Owed>();
  readonly #byId = new Map<string, Owed>();

  follow(note: Note): void {
    if (note.kind === "token") this.tokens.set(note.garden, note.token);
    if (note.kind === "sent") this.#send(note);
    if (note.kind === "answered") {
      const sent = this.#sent.get(note.number);
      if (sent) this.#answer(sent, note.status, note.location);
    }
  }

  #send(sent: Sent): void {
    this.#sent.set(sent.number, sent);
    if (sent.body !== undefined) {
      const { name, tag = "", id } = JSON.parse(sent.body);
      const { garden, body, key } = sent;
      // It may be sent again, and is the same plant then.
      if (this.#owed.has(name)) return;
      const open = { isCreated: false, isDeletionSent: false, isDeleted: false };
      this.#owed.set(name, { garden, name, tag, body, key, id, ...open });
    }
    const victim = this.#victimOf(sent);
    if (victim) victim.isDeletionSent = true;
  }

  #answer(sent: Sent, status: number, location = ""): void {
    if (status === 201 && sent.body !== undefined) {
      const owed = this.#owed.get(JSON.parse(sent.body).name) as Owed;
      owed.isCreated = true;
      owed.id = Number(location.split("/").at(-1));
      this.#byId.set(`${owed.garden} ${owed.id}`, owed);
    }
    const victim = this.#victimOf(sent);
    if (victim && status === 204) victim.isDeleted = true;
  }

  #victimOf({ request, garden }: Sent): Owed | undefined {
    const id = /^DELETE \/plants\/(.+)$/.exec(request)?.[1];
    return id === undefined ? undefined : this.#byId.get(`${garden} ${id}`);
  }

  /** The plants that were asked for with a key. */
  keyed(garden: string): Owed[] {
    return [...this.#owed.values()].filter((owed) => owed.garden === garden && owed.key);
  }

  /** How many writes were answered. */
  countPromises(): number {
    let count = 0;
    for (const owed of this.#owed.values())
      count += Number(owed.isCreated) + Number(owed.isDeleted);
    return count;
  }

  /** The highest id that a client has heard of, or sees in the list. */
  highestId(garden: string, plants: readonly Held[]): number {
    const answered = [...this.#byId.values()].filter((owed) => owed.garden === garden);
    return Math.max(0, ...[...answered, ...plants].map(({ id }) => id ?? 0));
  }

  /** Every promise that a garden does not keep, in words. Hashes of its keys lead to ids. */
  audit(
    garden: string,
    plants: readonly Held[],
    keys: ReadonlyMap<string, number>,
  ): readonly string[] {
    const faults: string[] = [];
    const held = new Map(plants.map((plant) => [plant.name, plant]));
    if (held.size < plants.length) faults.push(`${garden}: a plant is there twice`);
    for (const plant of plants) {
      const owed = this.#owed.get(plant.name);
      if (owed?.garden !== garden) faults.push(`never sent: ${garden} ${plant.name}`);
      else if (owed.tag !== plant.tag || (owed.id ?? plant.id) !== plant.id) {
        faults.push(`changed: ${garden} ${plant.name} is ${JSON.stringify(plant)}`);
      }
    }
    for (const owed of this.#owed.values()) {
      if (owed.garden !== garden) continue;
      const plant = held.get(owed.name);
      const keptId = owed.key === undefined ? undefined : keys.get(hashOf(owed.key));
      if (!plant && owed.isCreated && !owed.isDeletionSent) faults.push(`lost: ${owed.name}`);
      if (plant && owed.isDeleted) faults.push(`back again: ${owed.name}`);
      if (!owed.key) continue;
      if (keptId === undefined && (plant || owed.isCreated)) faults.push(`key lost: ${owed.name}`);
      if (keptId !== undefined && keptId !== (plant?.id ?? owed.id)) {
        faults.push(`key without its plant: ${owed.name}`);
      }
      if (keptId !== undefined && !plant && !owed.isDeletionSent) {
        faults.push(`key without a plant: ${owed.name}`);
      }
    }
    const asked = new Set(this.keyed(garden).map(({ key }) => hashOf(key ?? "")));
    for (const key of keys.keys()) if (!asked.has(key)) faults.push(`never sent: key ${key}`);
    return faults;
  }
}

export function hashOf(key: string): string {
  return new Bun.CryptoHasher("sha256").update(key).digest("hex");
}
