/**
 * A client of a Plant Store: `plantstore/client`. It runs wherever there is `fetch`, uses only the
 * HTTP API, and imports nothing else of the project.
 */
import { PlantStoreProblem } from "./problem-error.ts";
import { type ClientResponse, type RetryPolicy, send } from "./send.ts";
import type {
  CallOptions,
  CreatedPlant,
  CreateOptions,
  CreateResult,
  DeleteResult,
  Deletion,
  ListOptions,
  Me,
  Page,
  Plant,
  PlantDraft,
  PlantField,
  PlantStoreOptions,
} from "./types.ts";
import {
  formatId,
  makeIdempotencyKey,
  numberKey,
  parse,
  parseId,
  parseNext,
  parsePlants,
  parseResults,
  renderDraft,
  requireTexts,
  toBatches,
  toGroups,
} from "./wire-text.ts";

export {
  PlantStoreProblem,
  PlantStoreUnreachable,
  type ProblemCode,
  type ValidationError,
} from "./problem-error.ts";
export type * from "./types.ts";
export { makeIdempotencyKey } from "./wire-text.ts";

interface CallDetails extends CreateOptions {
  readonly headers?: Record<string, string>;
  readonly body?: string;
  /** How many plants or results the response may have. */
  readonly items?: number;
}

const pageSizeDefault = 1_000;
/** More than a problem has, and more than a plant or the result of a line adds to a response. */
const problemBytesMax = 64 * 1024;
const itemBytesMax = 2 * 1024;
/** How many deletions run at the same time. */
const deletionsMax = 16;
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
    const { retries = 10 } = options;
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
    const response = await this.#call("POST", "/plants", {
      headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
      body: renderDraft(draft),
      ...{ idempotencyKey, signal },
    });
    if (response.status !== 201) throw new PlantStoreProblem(response);
    return parse(response, ({ text, headers }) => ({
      ...(requireTexts(JSON.parse(text), ["name", "tag"]) as Pick<Plant, "name" | "tag">),
      id: parseId(headers.get("location")?.split("/").at(-1)),
      replayed: headers.get("idempotency-replayed") === "true",
    }));
  }

  /**
   * Creates plants in their order, each for itself, with a result for each. Resolves once all of
   * them are durable. Retries are safe, including a second call with the same plants and key.
   */
  async createMany(
    drafts: Iterable<PlantDraft> | AsyncIterable<PlantDraft>,
    options: CreateOptions = {},
  ): Promise<CreateResult[]> {
    const { idempotencyKey = makeIdempotencyKey(), signal } = options;
    if (idempotencyKey.length > manyKeyCharactersMax) {
      throw new RangeError(`The key must have at most ${manyKeyCharactersMax} characters.`);
    }
    const results: CreateResult[] = [];
    for await (const lines of toBatches(drafts)) {
      const key = results.length === 0 ? idempotencyKey : numberKey(idempotencyKey, results.length);
      const response = await this.#call("POST", "/plants/bulk", {
        headers: { "content-type": "application/jsonl", "idempotency-key": key },
        body: lines.join("\n"),
        items: lines.length,
        ...{ idempotencyKey, signal },
      });
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
    const response = await this.#call("GET", path, options);
    if (response.status !== 200) throw new PlantStoreProblem(response);
    return parse(response, ({ text }) => {
      const [plant] = parsePlants(`[${text}]`, ["id", "name", "tag"]);
      if (!plant) throw new TypeError("The plant is missing.");
      return plant as Plant;
    });
  }

  async me(options: CallOptions = {}): Promise<Me> {
    const response = await this.#call("GET", "/me", options);
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
    const { limit = pageSizeDefault, after, tag, signal } = options;
    const fields: readonly PlantField[] = options.fields ?? ["id", "name", "tag"];
    const query = new URLSearchParams({ limit: String(limit), fields: fields.join() });
    if (after !== undefined) query.set("after", formatId(after));
    if (tag !== undefined) query.set("tag", tag);
    // The service refuses any other limit.
    const items = limit > 0 && Number.isFinite(limit) ? limit : 0;
    const response = await this.#call("GET", `/plants?${query}`, { items, signal });
    if (response.status !== 200) throw new PlantStoreProblem(response);
    return parse(response, ({ text, headers }) => ({
      plants: parsePlants(text, fields) as Pick<Plant, Field>[],
      // The link of a page of 0 has the position that it was asked for.
      next: limit === 0 ? undefined : parseNext(headers, after),
    }));
  }

  /** Resolves once the deletion is durable. No such plant: a problem, `not-found`. */
  async delete(id: bigint | number, options: CallOptions = {}): Promise<Deletion> {
    const response = await this.#call("DELETE", `/plants/${formatId(id)}`, options);
    if (response.status === 204) return { confirmed: true };
    const problem = new PlantStoreProblem(response);
    // The code, not the status: a gateway that can't reach the service sends 404, too.
    if (problem.code === "not-found" && response.isRepeated) return { confirmed: false };
    throw problem;
  }

  /**
   * Deletes plants, several at a time, with a result for each in their order. Ids without a plant
   * are no error, so a call that failed can be repeated.
   */
  async deleteMany(
    ids: Iterable<bigint | number> | AsyncIterable<bigint | number>,
    options: CallOptions = {},
  ): Promise<DeleteResult[]> {
    const results: DeleteResult[] = [];
    for await (const group of toGroups(ids, deletionsMax)) {
      const deletions = group.map((id) => this.#deleteOne(id, options));
      // All of them have ended when this call fails.
      await Promise.allSettled(deletions);
      results.push(...(await Promise.all(deletions)));
    }
    return results;
  }

  async #deleteOne(id: bigint | number, options: CallOptions): Promise<DeleteResult> {
    try {
      return { status: 204, ...(await this.delete(id, options)) };
    } catch (error) {
      if (!(error instanceof PlantStoreProblem) || error.code !== "not-found") throw error;
      return { status: 404, code: error.code, detail: error.detail };
    }
  }

  #call(method: string, path: string, more: CallDetails): Promise<ClientResponse> {
    const { headers, body, items = 0, idempotencyKey, signal } = more;
    const request = {
      url: this.#url + path,
      headers: this.#headers(headers),
      // A deletion that was silently resent would find no plant, and look like a failure.
      isRepeatable: method !== "DELETE",
      responseBytesMax: problemBytesMax + items * itemBytesMax,
    };
    return send({ method, body, idempotencyKey, signal, ...request }, this.#policy);
  }

  #headers(more: Record<string, string> = {}): Headers {
    return new Headers({ ...more, authorization: this.#authorization });
  }
}
