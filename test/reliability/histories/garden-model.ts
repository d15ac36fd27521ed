/** A sequential model of a garden, by docs/interface.md. */
import type { Create, List, Operation, Plant } from "./history.ts";

const assignedIdMax = 2n ** 52n;

/** By key: the request that it was first sent with, and its plant. */
type Keys = ReadonlyMap<string, { readonly request: string; readonly id: bigint }>;

export class Garden {
  static readonly empty = new Garden([], 0n, new Map());
  /** Equal for equal gardens. */
  readonly fingerprint: string;
  readonly #plants: readonly Plant[];
  /** The highest id that was assigned, or chosen and counts. */
  readonly #lastId: bigint;
  readonly #keys: Keys;

  private constructor(plants: readonly Plant[], lastId: bigint, keys: Keys) {
    this.#plants = plants;
    this.#lastId = lastId;
    this.#keys = keys;
    const present = plants.map(({ id, name, tag }) => `${id} ${name} ${tag}`);
    const kept = Array.from(keys, ([key, { request, id }]) => `${key} ${request} ${id}`);
    this.fingerprint = [lastId, ...present, ...kept.toSorted()].join("\n");
  }

  /**
   * The garden after the operation: the same object if nothing changed, undefined if the operation
   * cannot have this result. An unknown result may be any.
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
        return new Garden(rest, this.#lastId, this.#keys);
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
    const id = call.id ?? this.#lastId + 1n;
    const isExhausted = call.id === undefined && id > assignedIdMax;
    if (isExhausted || this.#isTaken(id)) return this.#refuse(409, result);
    if (!isCreated(result, id, false)) return undefined;
    const plants = [...this.#plants, { id, name, tag }].toSorted(byId);
    const lastId = id <= assignedIdMax && id > this.#lastId ? id : this.#lastId;
    const keys = key === undefined ? this.#keys : new Map(this.#keys).set(key, { request, id });
    return new Garden(plants, lastId, keys);
  }

  #isTaken(id: bigint): boolean {
    return this.#plants.some((plant) => plant.id === id);
  }

  #refuse(status: number, result: Operation["result"]): Garden | undefined {
    if (result === undefined) return this;
    return result.kind === "refused" && result.status === status ? this : undefined;
  }

  #isListed({ after, limit, fields }: List, result: Operation["result"]): boolean {
    if (result === undefined) return true;
    if (result.kind !== "listed") return false;
    const rest = this.#plants.filter(({ id }) => after === undefined || id > after);
    const page = rest.slice(0, limit);
    if (page.length !== result.plants.length) return false;
    const isSame = page.every((plant, index) =>
      fields.every((field) => plant[field] === result.plants[index]?.[field]),
    );
    const isCut = page.length < rest.length;
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
