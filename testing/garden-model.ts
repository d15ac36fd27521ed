/** A sequential model of a garden, by docs/interface.md: what each call changes and returns. */

export interface Content {
  readonly name: string;
  readonly tag: string;
}

export interface Plant extends Content {
  readonly id: bigint;
}

/** What a plant was when its entity tag was read. */
export interface Seen extends Plant {
  readonly entityTag: string;
}

/** What an entity tag was read with, or any content. */
export type Tagged = Seen | "*";

interface Conditions {
  readonly ifMatch?: Tagged | undefined;
  readonly ifNoneMatch?: Tagged | undefined;
}

/** `count` asks `/me` for a number, `events` for the events after one. */
export type Call =
  | (Partial<Plant> & Content & { readonly kind: "create"; readonly key?: string })
  | (Plant & Conditions & { readonly kind: "put" })
  | (Partial<Content> & Conditions & { readonly kind: "patch"; readonly id: bigint })
  | (Conditions & { readonly kind: "delete"; readonly id: bigint })
  | { readonly kind: "get"; readonly id: bigint }
  | { readonly kind: "count"; readonly of: "plants" | "lastEvent" }
  | { readonly kind: "events"; readonly after: number }
  | List;

type CallOf<Kind> = Extract<Call, { readonly kind: Kind }>;

export interface List {
  readonly kind: "list";
  readonly include?: "id";
  readonly limit?: number;
  readonly after?: bigint;
}

/** The garden after a call, which is the same object if nothing changed. */
interface Outcome {
  readonly garden: Garden;
  /** Status, Location, whether it is replayed, where the link leads, and the body. */
  readonly response: string;
}

/** By key: the request that it was first sent with, and the id of its plant. */
type Keys = ReadonlyMap<string, { readonly request: string; readonly id: bigint }>;

const assignedIdMax = 2n ** 52n;

export class Garden {
  /** Equal for equal gardens. */
  readonly fingerprint: string;

  private constructor(
    private readonly plants: readonly Plant[],
    /** The highest id that was assigned, or chosen and counts. */
    private readonly lastId: bigint,
    private readonly keys: Keys,
    private readonly plantsMax: number,
    /** As `renderEvent` writes them, the oldest first. */
    readonly events: readonly string[],
  ) {
    const kept = Array.from(keys, ([key, { request, id }]) => `${key} ${request} ${id}`);
    // Plants and the last id follow from the events.
    this.fingerprint = [...events, ...kept.toSorted()].join("\n");
  }

  /** An empty garden with a quota. */
  static limitedTo(plantsMax: number): Garden {
    return new Garden([], 0n, new Map(), plantsMax, []);
  }

  take(call: Call, user = ""): Outcome {
    const result = this.#decide(call, user);
    return typeof result === "string" ? { garden: this, response: result } : result;
  }

  /** Only a response if nothing changes. */
  #decide(call: Call, user: string): Outcome | string {
    switch (call.kind) {
      case "create":
        return this.#create(call, user);
      case "put":
        return this.#put(call, user);
      case "patch":
        return this.#patch(call, user);
      case "delete":
        return this.#delete(call, user);
      case "get": {
        const found = this.#find(call.id);
        return found ? `200 ${render(found)}` : "404";
      }
      case "count":
        return `200 ${(call.of === "plants" ? this.plants : this.events).length}`;
      case "events": {
        const isGone = call.after > this.events.length;
        return isGone ? "410" : `200 ${this.events.slice(call.after).join("\n")}`;
      }
      case "list": {
        const rest = this.plants.filter(({ id }) => call.after === undefined || id > call.after);
        const page = rest.slice(0, call.limit);
        const next = page.length < rest.length ? ` next ${page.at(-1)?.id}` : "";
        return `200${next} [${page.map((plant) => render(plant, call.include))}]`;
      }
    }
  }

  #create(call: CallOf<"create">, user: string): Outcome | string {
    const { name, tag, key = "" } = call;
    const request = `${call.id} ${name} ${tag}`;
    const kept = this.keys.get(key);
    if (kept && kept.request !== request) return "422";
    if (kept) return `201 /plants/${kept.id} replayed ${render(call)}`;
    if (call.id !== undefined && this.#find(call.id)) return "409";
    if (this.#isFull) return "507";
    const id = call.id ?? this.lastId + 1n;
    if (call.id === undefined && id > assignedIdMax) return "409";
    const keys = key === "" ? this.keys : new Map(this.keys).set(key, { request, id });
    return { garden: this.#with({ id, name, tag }, user, keys), response: created(id, call) };
  }

  #put({ id, name, tag, ...conditions }: CallOf<"put">, user: string): Outcome | string {
    const found = this.#find(id);
    if (!areMet(conditions, found)) return "412";
    if (found) return this.#replace(found, { name, tag }, user);
    if (this.#isFull) return "507";
    return { garden: this.#with({ id, name, tag }, user), response: created(id, { name, tag }) };
  }

  #patch({ id, ifMatch, ifNoneMatch, ...change }: CallOf<"patch">, user: string): Outcome | string {
    const found = this.#find(id);
    if (!found) return "404";
    if (!areMet({ ifMatch, ifNoneMatch }, found)) return "412";
    return this.#replace(found, change, user);
  }

  #replace(found: Plant, change: Partial<Content>, user: string): Outcome {
    const { name = found.name, tag = found.tag } = change;
    const isSame = found.name === name && found.tag === tag;
    const garden = isSame ? this : this.#with({ id: found.id, name, tag }, user);
    return { garden, response: `200 ${render({ name, tag })}` };
  }

  #delete({ id, ...conditions }: CallOf<"delete">, user: string): Outcome | string {
    const found = this.#find(id);
    if (!found) return "404";
    if (!areMet(conditions, found)) return "412";
    const event = renderEvent("plant.deleted", user, found);
    return { garden: this.#after(event, this.#without(id)), response: "204" };
  }

  get #isFull(): boolean {
    return this.plants.length >= this.plantsMax;
  }

  #find(id: bigint): Plant | undefined {
    return this.plants.find((plant) => plant.id === id);
  }

  #with(plant: Plant, user: string, keys = this.keys): Garden {
    const { id } = plant;
    const event = renderEvent(this.#find(id) ? "plant.replaced" : "plant.created", user, plant);
    const lastId = id <= assignedIdMax && id > this.lastId ? id : this.lastId;
    const plants = [...this.#without(id), plant].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return this.#after(event, plants, lastId, keys);
  }

  #after(event: string, plants: readonly Plant[], lastId = this.lastId, keys = this.keys): Garden {
    return new Garden(plants, lastId, keys, this.plantsMax, [...this.events, event]);
  }

  #without(id: bigint): Plant[] {
    return this.plants.filter((plant) => plant.id !== id);
  }
}

/** All of an event but its number and its time. */
export function renderEvent(type: string, user: string, plant: Content & { id: unknown }): string {
  return JSON.stringify([type, user, String(plant.id), plant.name, plant.tag]);
}

function created(id: bigint, content: Content): string {
  return `201 /plants/${id} ${render(content)}`;
}

function render({ id, name, tag }: Partial<Plant>, include?: "id"): string {
  const content = JSON.stringify({ name, tag });
  return include ? `{"id":${id},${content.slice(1)}` : content;
}

function areMet({ ifMatch, ifNoneMatch }: Conditions, found: Plant | undefined): boolean {
  if (ifMatch && !matches(ifMatch, found)) return false;
  return !ifNoneMatch || !matches(ifNoneMatch, found);
}

/** An entity tag stands for the content that it was read with. */
function matches(tagged: Tagged, found: Plant | undefined): boolean {
  if (tagged === "*") return found !== undefined;
  return found?.name === tagged.name && found.tag === tagged.tag;
}
