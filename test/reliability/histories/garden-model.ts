/** A sequential model of a garden, by docs/interface.md. */
import type { Content, Create, Delete, List, Operation, Plant, Put, Seen } from "./history.ts";

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
      case "put":
        return this.#put(call, result);
      case "delete":
        return this.#delete(call, result);
      case "get": {
        const plant = this.#find(call.id);
        if (!plant) return this.#refuse(404, result);
        return !result || (result.kind === "found" && isSame(result.plant, plant))
          ? this
          : undefined;
      }
      case "count":
        return !result || (result.kind === "counted" && result.plants === this.#plants.length)
          ? this
          : undefined;
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
    if (isExhausted || this.#find(id)) return this.#refuse(409, result);
    if (!isCreated(result, id, false)) return undefined;
    const keys = key === undefined ? this.#keys : new Map(this.#keys).set(key, { request, id });
    return this.#with({ id, name, tag }, keys);
  }

  #put({ id, name, tag, ifMatch, isForNew }: Put, result: Operation["result"]): Garden | undefined {
    const found = this.#find(id);
    if ((isForNew && found) || !matches(ifMatch, found)) return this.#refuse(412, result);
    if (!found) return isCreated(result, id, false) ? this.#with({ id, name, tag }) : undefined;
    if (result && result.kind !== "replaced") return undefined;
    return isSame(found, { name, tag }) ? this : this.#with({ id, name, tag });
  }

  #delete({ id, ifMatch }: Delete, result: Operation["result"]): Garden | undefined {
    const found = this.#find(id);
    if (!matches(ifMatch, found)) return this.#refuse(412, result);
    if (!found) return this.#refuse(404, result);
    if (result && result.kind !== "deleted") return undefined;
    return new Garden(this.#without(id), this.#lastId, this.#keys);
  }

  #find(id: bigint): Plant | undefined {
    return this.#plants.find((plant) => plant.id === id);
  }

  #with(plant: Plant, keys = this.#keys): Garden {
    const { id } = plant;
    const lastId = id <= assignedIdMax && id > this.#lastId ? id : this.#lastId;
    return new Garden([...this.#without(id), plant].toSorted(byId), lastId, keys);
  }

  #without(id: bigint): Plant[] {
    return this.#plants.filter((plant) => plant.id !== id);
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
    const isPage = page.every((plant, index) =>
      fields.every((field) => plant[field] === result.plants[index]?.[field]),
    );
    const isCut = page.length < rest.length;
    if (!isPage || isCut !== (result.next !== undefined)) return false;
    return !isCut || result.next?.after === (page.at(-1)?.id ?? after);
  }
}

function isCreated(result: Operation["result"], id: bigint, isReplayed: boolean): boolean {
  if (result === undefined) return true;
  return result.kind === "created" && result.id === id && result.isReplayed === isReplayed;
}

function isSame(one: Content, other: Content): boolean {
  return one.name === other.name && one.tag === other.tag;
}

/** An entity tag stands for the content that it was read with. */
function matches(ifMatch: Seen | undefined, found: Plant | undefined): boolean {
  return ifMatch === undefined || (found !== undefined && isSame(ifMatch, found));
}

function byId(one: Plant, other: Plant): number {
  return one.id < other.id ? -1 : 1;
}
