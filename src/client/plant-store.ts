/**
 * A client of a Plant Store: `plantstore/client`. It runs wherever there is `fetch`, uses only the
 * HTTP API, and imports nothing else of the project.
 */
import { PlantStoreProblem, type ProblemCode, type ValidationError } from "./problem-error.ts";
import { type ClientResponse, type RetryPolicy, send } from "./send.ts";
import type * as wire from "./wire-types.ts";

export {
  PlantStoreProblem,
  PlantStoreUnreachable,
  type ProblemCode,
  type ValidationError,
} from "./problem-error.ts";

export interface PlantStoreOptions {
  /** Where the service is, with its base path: `https://plants.example/v1`. */
  readonly url: string;
  /** With or without `Bearer` before it. Missing or empty is an error, to catch unset variables. */
  readonly token: string | undefined;
  /** Replaces the global one. */
  readonly fetch?: RetryPolicy["fetch"];
  /** Default 4. Only what can safely be repeated is. */
  readonly retries?: number;
  /** Retries after 429, counted separately; as many as `retries` by default. */
  readonly limitedRetries?: number;
  /** The longest `Retry-After` to wait for: 60,000 by default. Beyond it the call fails at once. */
  readonly retryAfterMsMax?: number;
  /** For each try, to the last byte of the response: 30,000 by default. */
  readonly timeoutMs?: number;
}

export interface CallOptions {
  /** Aborts the call, also while it waits for a retry. */
  readonly signal?: AbortSignal | undefined;
}

export interface CreateOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters, a random one by default. For many plants up to 240, and 230
   * where they take more than one request.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface ListOptions<Field extends PlantField> extends CallOptions {
  /** How many plants in total; all by default. */
  readonly limit?: number | undefined;
  /** An id; the list starts after it. */
  readonly after?: bigint | number | undefined;
  /** Only plants with exactly this tag. */
  readonly tag?: string | undefined;
  /** The fields of each plant; all by default. */
  readonly fields?: readonly Field[] | undefined;
  /** How many plants to fetch at a time: 1,000 by default. */
  readonly pageSize?: number | undefined;
}

export type Plant = { readonly [Field in keyof wire.Plant]-?: NonNullable<wire.Plant[Field]> };
export type PlantField = keyof Plant;
export type PlantDraft = Omit<wire.PlantDraft, "id"> & {
  /** Assigned by the service if absent. */
  readonly id?: bigint | number | undefined;
};

export interface CreatedPlant extends Plant {
  /** Whether an earlier request with the same key, or an earlier try, had created the plant. */
  readonly replayed: boolean;
}

/** What became of one of many plants. */
export type CreateResult =
  | { readonly status: 201; readonly id: bigint; readonly replayed: boolean }
  | {
      readonly status: 400 | 409 | 422 | 507;
      readonly code: ProblemCode;
      readonly detail: string;
      readonly errors?: readonly ValidationError[];
    };

/** Who the token stands for; without `expiresAt` it doesn't expire. */
export type Me = wire.Me;

export interface Page<Field extends PlantField = PlantField> {
  readonly plants: Pick<Plant, Field>[];
  /** The id that the next page starts after; absent on the last page, and with a limit of 0. */
  readonly next: bigint | undefined;
}

export interface Deletion {
  /**
   * False: the response to a try was lost, and the next try found no plant. It is gone, perhaps
   * since before this call.
   */
  readonly confirmed: boolean;
}

const pageSizeDefault = 1_000;
/** What the service takes in one request. */
const batchLinesMax = 10_000;
const batchBytesMax = 1024 * 1024;
/** Leaves room for the number of a batch. */
const manyKeyCharactersMax = 230;
/** A longer timer fires at once. */
const timerMsMax = 2 ** 31 - 1;

/**
 * Calls throw `PlantStoreProblem` if the service refuses, `PlantStoreUnreachable` if it doesn't
 * respond, and the signal's reason if they are aborted.
 */
export class PlantStore {
  readonly #url: string;
  readonly #authorization: string;
  readonly #policy: RetryPolicy;

  constructor(options: PlantStoreOptions) {
    const { protocol, origin, pathname, username, password } = new URL(options.url);
    // Such as localhost:8080, which a browser would take for a path of the page's own service.
    if (!/^https?:$/.test(protocol)) throw new TypeError("The url must begin with http(s)://.");
    if (username + password !== "") {
      throw new TypeError("The url must not hold a user or a password.");
    }
    this.#url = origin + pathname.replace(/\/+$/, "");
    // People paste it as they copied it, from a header or with a line break after it.
    const token = options.token?.trim().replace(/^bearer\s+/i, "");
    if (!token) throw new TypeError("A token is needed.");
    if (/\s/.test(token)) throw new TypeError("A token has no spaces in it.");
    this.#authorization = `Bearer ${token}`;
    const { retries = 4 } = options;
    this.#policy = {
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
      retries,
      limitedRetries: options.limitedRetries ?? retries,
      retryAfterMsMax: options.retryAfterMsMax ?? 60_000,
      timeoutMs: Math.min(options.timeoutMs ?? 30_000, timerMsMax),
    };
    // A token that can't be sent in a header fails here, not as a call without a response.
    this.#headers();
  }

  /** Resolves once the plant is durable. Retries are safe: they create one plant at most. */
  async create(draft: PlantDraft, options: CreateOptions = {}): Promise<CreatedPlant> {
    const { idempotencyKey = makeIdempotencyKey(), signal } = options;
    const response = await this.#post("/plants", renderDraft(draft), idempotencyKey, signal);
    if (response.status !== 201) throw new PlantStoreProblem(response);
    return parse(response, ({ text, headers }) => ({
      ...(requireTexts(JSON.parse(text), ["name", "tag"]) as Pick<Plant, "name" | "tag">),
      id: parseId(headers.get("location")?.split("/").at(-1)),
      replayed: headers.get("idempotency-replayed") === "true",
    }));
  }

  /**
   * Creates plants in their order, each for itself, with a result for each. Resolves once all of
   * them are durable. Retries are safe, also a second call with the same plants and key.
   */
  async createMany(
    drafts: readonly PlantDraft[],
    options: CreateOptions = {},
  ): Promise<CreateResult[]> {
    const { idempotencyKey = makeIdempotencyKey(), signal } = options;
    const batches = [...toBatches(drafts)];
    if (batches.length > 1 && idempotencyKey.length > manyKeyCharactersMax) {
      throw new RangeError(`The key must have at most ${manyKeyCharactersMax} characters.`);
    }
    const results: CreateResult[] = [];
    for (const lines of batches) {
      const key = results.length === 0 ? idempotencyKey : numberKey(idempotencyKey, results.length);
      const response = await this.#post("/plants/bulk", lines.join("\n"), key, signal);
      if (response.status !== 200) throw new PlantStoreProblem(response);
      for (const result of parse(response, ({ text }) => parseResults(text, lines.length))) {
        results.push(result);
      }
    }
    return results;
  }

  /** No such plant: a problem, `not-found`. */
  async get(id: bigint | number, options: CallOptions = {}): Promise<Plant> {
    const path = `/plants/${formatId(id)}?fields=id,name,tag`;
    const response = await this.#call("GET", path, options.signal);
    if (response.status !== 200) throw new PlantStoreProblem(response);
    return parse(response, ({ text }) => {
      const [plant] = parsePlants(`[${text}]`, ["id", "name", "tag"]);
      return plant as Plant;
    });
  }

  async me(options: CallOptions = {}): Promise<Me> {
    const response = await this.#call("GET", "/me", options.signal);
    if (response.status !== 200) throw new PlantStoreProblem(response);
    return parse(response, ({ text }) => {
      const me: Me = JSON.parse(text);
      if (typeof me.garden !== "string") throw new TypeError("A field is missing.");
      return me;
    });
  }

  /** The plants by ascending id, fetched page by page while they are consumed. */
  async *list<Field extends PlantField = PlantField>(
    options: ListOptions<Field> = {},
  ): AsyncGenerator<Pick<Plant, Field>, void, undefined> {
    for await (const page of this.pages(options)) yield* page;
  }

  /** The same as `list`, a page at a time. */
  async *pages<Field extends PlantField = PlantField>(
    options: ListOptions<Field> = {},
  ): AsyncGenerator<Pick<Plant, Field>[], void, undefined> {
    const { limit = Number.POSITIVE_INFINITY, pageSize = pageSizeDefault } = options;
    let { after } = options;
    for (let remaining = limit; remaining !== 0; ) {
      if (pageSize === 0) throw new RangeError("A page must have at least one plant.");
      // Also what isn't a number, so that the service refuses it.
      const pageLimit = remaining >= pageSize ? pageSize : remaining;
      const { plants, next } = await this.page({ ...options, limit: pageLimit, after });
      remaining -= plants.length;
      if (plants.length > 0) yield plants;
      if (next === undefined) return;
      after = next;
    }
  }

  /** One page of up to `limit` plants. */
  async page<Field extends PlantField = PlantField>(
    options: Omit<ListOptions<Field>, "pageSize"> = {},
  ): Promise<Page<Field>> {
    const { limit = pageSizeDefault, after, tag } = options;
    const fields: readonly PlantField[] = options.fields ?? ["id", "name", "tag"];
    const query = new URLSearchParams({ limit: String(limit), fields: fields.join() });
    if (after !== undefined) query.set("after", formatId(after));
    if (tag !== undefined) query.set("tag", tag);
    const response = await this.#call("GET", `/plants?${query}`, options.signal);
    if (response.status !== 200) throw new PlantStoreProblem(response);
    return parse(response, ({ text, headers }) => ({
      plants: parsePlants(text, fields) as Pick<Plant, Field>[],
      // The link of a page of 0 has the position that it was asked for.
      next: limit === 0 ? undefined : parseNext(headers, after),
    }));
  }

  /** Resolves once the deletion is durable. No such plant: a problem, `not-found`. */
  async delete(id: bigint | number, options: CallOptions = {}): Promise<Deletion> {
    const response = await this.#call("DELETE", `/plants/${formatId(id)}`, options.signal);
    if (response.status === 204) return { confirmed: true };
    const problem = new PlantStoreProblem(response);
    // The code, not the status: a gateway that can't reach the service sends 404, too.
    if (problem.code === "not-found" && response.isRepeated) return { confirmed: false };
    throw problem;
  }

  #post(
    path: "/plants" | "/plants/bulk",
    body: string,
    idempotencyKey: string,
    signal: AbortSignal | undefined,
  ): Promise<ClientResponse> {
    const headers = {
      "content-type": path === "/plants" ? "application/json" : "application/jsonl",
      "idempotency-key": idempotencyKey,
    };
    return this.#call("POST", path, signal, { headers, body });
  }

  #call(
    method: string,
    path: string,
    signal: AbortSignal | undefined,
    more: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<ClientResponse> {
    const headers = this.#headers(more.headers);
    // A deletion that was silently resent would find no plant, and look like a failure.
    const isRepeatable = method !== "DELETE";
    const url = this.#url + path;
    return send({ url, method, headers, body: more.body, signal, isRepeatable }, this.#policy);
  }

  #headers(more: Record<string, string> = {}): Headers {
    return new Headers({ ...more, authorization: this.#authorization });
  }
}

/** Not `randomUUID`, which browsers deny to pages loaded over plain HTTP. */
export function makeIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The key of a later batch: with its number, inside the quotes if there are any. */
function numberKey(key: string, batch: number): string {
  return key.replace(/"?$/, (quote) => `.${batch}${quote}`);
}

/** The id is written by hand, because `JSON.stringify` takes no bigint. */
function renderDraft({ id, name, tag }: PlantDraft): string {
  const rest = JSON.stringify({ name, tag });
  return id === undefined ? rest : `{"id":${formatId(id)},${rest.slice(1)}`;
}

/** The drafts as lines, as many at a time as the service takes. */
function* toBatches(drafts: readonly PlantDraft[]): Iterable<string[]> {
  const encoder = new TextEncoder();
  let lines: string[] = [];
  let bytes = 0;
  for (const draft of drafts) {
    const line = renderDraft(draft);
    const lineBytes = encoder.encode(line).length + 1;
    if (lines.length === batchLinesMax || (bytes + lineBytes > batchBytesMax && bytes > 0)) {
      yield lines;
      lines = [];
      bytes = 0;
    }
    lines.push(line);
    bytes += lineBytes;
  }
  if (lines.length > 0) yield lines;
}

function parseResults(text: string, count: number): CreateResult[] {
  // In JSON a line break is never part of a string.
  const results = JSON.parse(quoteIds(`[${text.trimEnd().replaceAll("\n", ",")}]`));
  if (results.length !== count) throw new TypeError("A result is missing.");
  return results.map((result: Record<string, unknown>) =>
    result.status === 201
      ? { status: 201, id: parseId(result.id), replayed: result.replayed === true }
      : result,
  );
}

/** A response that isn't a Plant Store's, such as a proxy's sign-in page, becomes a problem. */
function parse<Result>(
  response: ClientResponse,
  read: (response: ClientResponse) => Result,
): Result {
  try {
    return read(response);
  } catch {
    throw new PlantStoreProblem(response);
  }
}

/**
 * `JSON.parse` would round an id beyond 2^53. Text inside a string can't look like this: its quotes
 * are escaped.
 */
function quoteIds(text: string): string {
  return text.replace(/"id":\s*(-?\d+)/g, '"id":"$1"');
}

function parsePlants(text: string, fields: readonly PlantField[]): wire.Plant[] {
  const items: { id?: string | bigint }[] = JSON.parse(quoteIds(text));
  for (const item of items) {
    requireTexts(item, fields);
    if (item.id !== undefined) item.id = parseId(item.id);
  }
  return items as wire.Plant[];
}

/** A service that doesn't know `fields` leaves the id out. */
function requireTexts<Item extends object>(item: Item, fields: readonly PlantField[]): Item {
  const members = item as Readonly<Record<string, unknown>>;
  if (fields.every((field) => typeof members[field] === "string")) return item;
  throw new TypeError("A field is missing.");
}

/**
 * The id in the link to the next page. The rest of the link isn't followed: the token goes nowhere
 * else, and a proxy that rewrites paths does no harm.
 */
function parseNext(headers: Headers, after: bigint | number | undefined): bigint | undefined {
  const query = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(headers.get("link") ?? "")?.[1];
  if (query === undefined) return undefined;
  const next = parseId(new URLSearchParams(query).get("after"));
  if (after === undefined || next > after) return next;
  throw new TypeError("The link to the next page leads back.");
}

/** Throws if it is a number that may have been rounded already. */
function formatId(id: bigint | number): string {
  if (typeof id === "bigint" || Number.isSafeInteger(id)) return String(id);
  throw new RangeError(`An id must be a bigint or a safe integer, not ${id}.`);
}

/** Stricter than `BigInt`, which takes an empty string for 0 and `0x7` for 7. */
function parseId(text: unknown): bigint {
  if (typeof text === "string" && /^-?\d+$/.test(text)) return BigInt(text);
  throw new SyntaxError("An id must be a decimal integer.");
}
