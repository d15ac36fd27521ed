/**
 * What a garden is to its clients: operations one after the other, by docs/interface.md. It knows
 * no time, no engine and no HTTP.
 */
import type { Create, List, Operation, Plant } from "./history.ts";

const countedIdMax = 2n ** 52n;

/** By key, the request that it was first sent with, and its plant. */
type Keys = ReadonlyMap<string, { readonly request: string; readonly id: bigint }>;

export class Garden {
  static readonly empty = new Garden([], 0n, new Map(), new Set());
  /** Equal text means the same garden. */
  readonly fingerprint: string;
  readonly #plants: readonly Plant[];
  /** The highest id that was assigned, or given and counts. */
  readonly #lastId: bigint;
  readonly #keys: Keys;
  /** The ids that were given and do not count, also of plants that are gone. */
  readonly #uncounted: ReadonlySet<bigint>;

  private constructor(
    plants: readonly Plant[],
    lastId: bigint,
    keys: Keys,
    uncounted: ReadonlySet<bigint>,
  ) {
    this.#plants = plants;
    this.#lastId = lastId;
    this.#keys = keys;
    this.#uncounted = uncounted;
    const standing = plants.map(({ id, name, tag }) => `${id} ${name} ${tag}`);
    const kept = Array.from(keys, ([key, { request, id }]) => `${key} ${request} ${id}`);
    const given = Array.from(uncounted, String).toSorted();
    this.fingerprint = [lastId, ...standing, ...kept.toSorted(), ...given].join("\n");
  }

  /**
   * The garden after the operation: this one itself if nothing changed, and none if it cannot have
   * been answered like this. An operation whose outcome is unknown could have been answered in any
   * way.
   */
  after(operation: Operation): Garden | undefined {
    const { call, result } = operation;
    switch (call.kind) {
      case "create":
        return this.#create(call, result);
      case "delete": {
        const rest = this.#plants.filter(({ id }) => id !== call.id);
        if (rest.length === this.#plants.length) return this.#refuse(404, result);
        if (result && result.kind !== "deleted") return undefined;
        return new Garden(rest, this.#lastId, this.#keys, this.#uncounted);
      }
      case "list":
        return this.#isListed(call, result) ? this : undefined;
    }
  }

  #create(call: Create, result: Operation["result"]): Garden | undefined {
    const { name, tag, key } = call;
    const request = `${call.id} ${name} ${tag}`;
    const kept = key === undefined ? undefined : this.#keys.get(key);
    if (kept && kept.request !== request) return this.#refuse(422, result);
    if (kept) return isCreated(result, kept.id, true) ? this : undefined;
    const id = call.id ?? this.#nextId(result);
    if (this.#isStanding(id)) return this.#refuse(409, result);
    if (!isCreated(result, id, false)) return undefined;
    const plants = [...this.#plants, { id, name, tag }].toSorted(byId);
    const isCounted = call.id === undefined || id <= countedIdMax;
    const lastId = isCounted && id > this.#lastId ? id : this.#lastId;
    const keys = key === undefined ? this.#keys : new Map(this.#keys).set(key, { request, id });
    const uncounted = isCounted ? this.#uncounted : new Set(this.#uncounted).add(id);
    return new Garden(plants, lastId, keys, uncounted);
  }

  /**
   * It steps over ids that were given, and may step over one whose plant goes at that moment: the
   * interface promises an id that is free and higher, and not the first of them.
   */
  #nextId(result: Operation["result"]): bigint {
    const told = result?.kind === "created" ? result.id : undefined;
    let id = this.#lastId + 1n;
    while (this.#isStanding(id) || (told && told > id && this.#uncounted.has(id))) id++;
    return id;
  }

  #isStanding(id: bigint): boolean {
    return this.#plants.some((plant) => plant.id === id);
  }

  #refuse(status: number, result: Operation["result"]): Garden | undefined {
    if (result === undefined) return this;
    return result.kind === "refused" && result.status === status ? this : undefined;
  }

  #isListed({ after, limit, fields }: List, result: Operation["result"]): boolean {
    if (result === undefined) return true;
    if (result.kind !== "listed") return false;
    const behind = this.#plants.filter(({ id }) => after === undefined || id > after);
    const page = behind.slice(0, limit);
    if (page.length !== result.plants.length) return false;
    const isSame = page.every((plant, index) =>
      fields.every((field) => plant[field] === result.plants[index]?.[field]),
    );
    const isCut = page.length < behind.length;
    if (!isSame || isCut !== (result.next !== undefined)) return false;
    return !isCut || result.next?.after === (page.at(-1)?.id ?? after);
  }
}

function isCreated(result: Operation["result"], id: bigint, isReplayed: boolean): boolean {
  if (result === undefined) return true;
  return result.kind === "created" && result.id === id && result.isReplayed === isReplayed;
}

function byId(one: Plant, other: Plant): number {
  return one.id < other.id ? -1 : 1;
}
