/**
 * A client of a Plant Store: `plantstore/client`. It runs wherever there is `fetch`, talks to the
 * HTTP API only, and imports nothing else of the project.
 */
import { parseWithExactIds, readId, renderId } from "./exact-json.ts";
import { type Answer, exchange, type Patience, toProblem } from "./exchange.ts";
import type * as wire from "./wire-types.ts";

export {
  type Fault,
  PlantStoreProblem,
  PlantStoreUnreachable,
  type ProblemCode,
} from "./problem-error.ts";

export interface PlantStoreOptions {
  /** Where the service is, with its base path, such as `https://plants.example/v1`. */
  readonly url: string;
  /** Absent or empty is an error: so that a variable that is not set is found at once. */
  readonly token: string | undefined;
  /** In place of the global one. */
  readonly fetch?: Patience["fetch"];
  /** Further tries after the first, where a try can be repeated safely: 4 if absent. */
  readonly retries?: number;
  /**
   * Further tries after answers that came too soon for the service's rate limit: as many, if
   * absent.
   */
  readonly limitedRetries?: number;
  /** For each try, to the last byte of its answer: 30,000 if absent. */
  readonly timeoutMs?: number;
}

export interface CallOptions {
  /** Aborts the call, also while it waits between two tries. */
  readonly signal?: AbortSignal | undefined;
}

export interface CreateOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters; a random one if absent. */
  readonly idempotencyKey?: string | undefined;
}

export interface ListOptions<Field extends PlantField> extends CallOptions {
  /** How many plants in all; every one if absent. */
  readonly limit?: number | undefined;
  /** An id; the list starts behind it. */
  readonly after?: bigint | number | undefined;
  /** What the plants come with; all fields if absent. */
  readonly fields?: readonly Field[] | undefined;
  /** How many plants are fetched at a time: 1,000 if absent. */
  readonly pageSize?: number | undefined;
}

type Item = wire.PlantList[number];
export type Plant = { readonly [Field in keyof Item]-?: NonNullable<Item[Field]> };
export type PlantField = keyof Plant;
export type PlantDraft = Omit<wire.PlantDraft, "id"> & {
  /** Assigned by the service if absent. */
  readonly id?: bigint | number | undefined;
};

export interface CreatedPlant extends Plant {
  /** Whether an earlier request with the same key, or an earlier try, had created the plant. */
  readonly replayed: boolean;
}

export interface Deletion {
  /**
   * False: a try's answer was lost, and the next one found no plant. It is gone, perhaps before.
   */
  readonly confirmed: boolean;
}

const pageSizeDefault = 1_000;
/** A timer that is set for longer ends at once. */
const timerMsMax = 2 ** 31 - 1;

/**
 * Calls fail with `PlantStoreProblem` if the service refuses, with `PlantStoreUnreachable` if it
 * does not answer, and with the signal's reason if they are aborted.
 */
export class PlantStore {
  readonly #address: string;
  readonly #authorization: string;
  readonly #patience: Patience;

  constructor(options: PlantStoreOptions) {
    const { protocol, origin, pathname, username, password } = new URL(options.url);
    // Such as localhost:8080, which a browser would take for a path of the page's own service.
    if (!/^https?:$/.test(protocol)) throw new TypeError("The url must begin with http(s)://.");
    if (username + password !== "") {
      throw new TypeError("The url must not hold a user or a password.");
    }
    this.#address = `${origin}${pathname.replace(/\/+$/, "")}/plants`;
    if (!options.token) throw new TypeError("A token is needed.");
    this.#authorization = `Bearer ${options.token}`;
    const { retries = 4 } = options;
    this.#patience = {
      fetch: options.fetch ?? globalThis.fetch,
      retries,
      limitedRetries: options.limitedRetries ?? retries,
      timeoutMs: Math.min(options.timeoutMs ?? 30_000, timerMsMax),
    };
    // A token that no header can hold fails here, not as a call without an answer.
    this.#headers();
  }

  /** Resolves once the plant is on stable storage. Its key makes tries safe: one plant at most. */
  async create(draft: PlantDraft, options: CreateOptions = {}): Promise<CreatedPlant> {
    const { name, tag, id } = draft;
    const fields = JSON.stringify({ name, tag }).slice(1);
    const separator = fields === "}" ? "" : ",";
    const answer = await this.#call("POST", this.#address, options.signal, {
      headers: {
        "content-type": "application/json",
        "idempotency-key": options.idempotencyKey ?? makeKey(),
      },
      body: `{${id === undefined ? "" : `"id":${renderId(id)}${separator}`}${fields}`,
    });
    if (answer.status !== 201) throw toProblem(answer);
    return readAnswer(answer, ({ text, headers }) => ({
      ...requireFields(JSON.parse(text) as wire.Plant, ["name", "tag"]),
      id: readId(headers.get("location")?.split("/").at(-1)),
      replayed: headers.get("idempotency-replayed") === "true",
    }));
  }

  /** The plants by ascending id, fetched page by page as they are taken. */
  async *list<Field extends PlantField = PlantField>(
    options: ListOptions<Field> = {},
  ): AsyncGenerator<Pick<Plant, Field>, void, undefined> {
    for await (const page of this.pages(options)) yield* page;
  }

  /** The same as `list`, a page at a time. */
  async *pages<Field extends PlantField = PlantField>(
    options: ListOptions<Field> = {},
  ): AsyncGenerator<Pick<Plant, Field>[], void, undefined> {
    const { limit = Number.POSITIVE_INFINITY, pageSize = pageSizeDefault, after } = options;
    const fields: readonly PlantField[] = options.fields ?? ["id", "name", "tag"];
    let query: URLSearchParams | undefined = new URLSearchParams({
      limit: String(pageSize),
      fields: fields.join(),
    });
    if (after !== undefined) query.set("after", renderId(after));
    for (let remaining = limit; query !== undefined && remaining !== 0; ) {
      // Also what is no number, so that the service refuses it.
      if (!(remaining >= pageSize)) query.set("limit", String(remaining));
      const answer = await this.#call("GET", `${this.#address}?${query}`, options.signal);
      if (answer.status !== 200) throw toProblem(answer);
      const last: URLSearchParams = query;
      const page = readAnswer(answer, () => readPage(answer.text, fields)) as Pick<Plant, Field>[];
      remaining -= page.length;
      query = readAnswer(answer, () => readNextQuery(answer.headers, last));
      if (page.length > 0) yield page;
    }
  }

  /** Resolves once the deletion is on stable storage. No such plant: a problem, `not-found`. */
  async delete(id: bigint | number, options: CallOptions = {}): Promise<Deletion> {
    const address = `${this.#address}/${renderId(id)}`;
    const answer = await this.#call("DELETE", address, options.signal);
    if (answer.status === 204) return { confirmed: true };
    const problem = toProblem(answer);
    // A gateway without a way to the service answers with 404, too, and the plant is still there.
    if (problem.code === "not-found" && answer.isRepeated) return { confirmed: false };
    throw problem;
  }

  #call(
    method: string,
    address: string,
    signal: AbortSignal | undefined,
    more: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<Answer> {
    const headers = this.#headers(more.headers);
    // A deletion that was repeated unseen would find no plant, and be taken for one that failed.
    const isRepeatable = method !== "DELETE";
    const wish = { address, method, headers, body: more.body, signal, isRepeatable };
    return exchange(wish, this.#patience);
  }

  #headers(more: Record<string, string> = {}): Headers {
    return new Headers({ ...more, authorization: this.#authorization });
  }
}

/** Not `randomUUID`, which pages that came over plain HTTP do not have. */
function makeKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * An answer that is none of a Plant Store's, such as a page to sign in at, is told as a problem.
 */
function readAnswer<Result>(answer: Answer, read: (answer: Answer) => Result): Result {
  try {
    return read(answer);
  } catch {
    throw toProblem(answer);
  }
}

function readPage(text: string, fields: readonly PlantField[]): wire.PlantList {
  const items = parseWithExactIds(text) as wire.PlantList;
  for (const item of items) requireFields(item, fields);
  return items;
}

/** A service that does not know `fields` leaves the id out. */
function requireFields<Item extends object>(item: Item, fields: readonly PlantField[]): Item {
  const members = item as Readonly<Record<string, unknown>>;
  const typeOf = (field: PlantField) => (field === "id" ? "bigint" : "string");
  if (fields.every((field) => typeof members[field] === typeOf(field))) return item;
  throw new TypeError("A field is missing.");
}

/**
 * Only the query of the link is followed, at the client's own address: so the token goes nowhere
 * else, and a proxy that changes paths does no harm.
 */
function readNextQuery(headers: Headers, last: URLSearchParams): URLSearchParams | undefined {
  const query = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(headers.get("link") ?? "")?.[1];
  if (query === undefined) return undefined;
  const next = new URLSearchParams(query);
  if (next.get("after") !== last.get("after")) return next;
  throw new TypeError("The link to the next page leads nowhere.");
}
