/**
 * A client of a Plant Store: `plantstore-client`. It runs wherever there is `fetch`, uses only the
 * HTTP API, and imports nothing else of the project.
 */
import { endlessPolicy, followEvents, parseEvents, streamPolicy } from "./events.ts";
import { hasCode, PlantStoreProblem } from "./problem-error.ts";
import { type ClientResponse, type RetryPolicy, send } from "./send.ts";
import type {
  CallOptions,
  CreatedPlant,
  CreateManyOptions,
  CreateOptions,
  CreateResult,
  DeleteOptions,
  DeleteResult,
  Deletion,
  EventPage,
  EventPageOptions,
  EventsOptions,
  ListOptions,
  ManyOptions,
  Me,
  Page,
  Plant,
  PlantChange,
  PlantDraft,
  PlantEvent,
  PlantField,
  PlantStoreOptions,
  PutOptions,
  PutPlant,
  StoredPlant,
  TagCount,
  TagsOptions,
  UpdateOptions,
  UpdateResult,
} from "./types.ts";
import {
  formatId,
  makeIdempotencyKey,
  parse,
  parseId,
  parseMissing,
  parseNext,
  parsePlant,
  parsePlants,
  parseResults,
  parseTags,
  readEtag,
  renderDraft,
  renderQuery,
  requireTexts,
  toBulks,
} from "./wire-text.ts";

export {
  hasCode,
  PlantStoreProblem,
  PlantStoreUnreachable,
  type ProblemCode,
  type ValidationError,
} from "./problem-error.ts";
export type * from "./types.ts";
export { makeIdempotencyKey } from "./wire-text.ts";

/** What the caller has chosen, and `limitedRetries` for events. */
interface CallPolicy extends ManyOptions {
  readonly limitedRetries?: number;
}

interface CallDetails {
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** JSON. */
  readonly body?: string;
  /** The whole call's, for errors. `createMany` sends it with a suffix in the header. */
  readonly idempotencyKey?: string;
}

/** The service links to the next page up to this limit. */
const pageSizeMax = 1_000;
/** Leaves room for the number of a bulk. */
const manyKeyCharactersMax = 230;

/**
 * Calls throw `PlantStoreProblem` if the service refuses, `PlantStoreUnreachable` if it doesn't
 * respond, and the signal's reason if they are aborted.
 */
export class PlantStore {
  readonly #url: string;
  /** Absent if the token is always the same. */
  readonly #askToken: Extract<PlantStoreOptions["token"], () => unknown> | undefined;
  #authorization: Promise<string> | undefined;
  /** Of every request. */
  readonly #headers: Headers;
  readonly #options: PlantStoreOptions;

  constructor(options: PlantStoreOptions) {
    const { protocol, origin, pathname, username, password } = new URL(options.url);
    // Such as localhost:8080, which a browser would take for a path of the page's own service.
    if (!/^https?:$/.test(protocol) || username + password !== "") {
      throw new TypeError("The url must begin with http(s):// and hold no user or password.");
    }
    this.#url = origin + pathname.replace(/\/+$/, "");
    const { token } = options;
    if (typeof token === "function") this.#askToken = token;
    else this.#authorization = Promise.resolve(toAuthorization(token));
    this.#headers = new Headers(options.headers);
    this.#options = options;
  }

  /** Resolves once the plant is durable. Retries are safe: they create one plant at most. */
  async create(draft: PlantDraft, options: CreateOptions = {}): Promise<CreatedPlant> {
    const { idempotencyKey = makeIdempotencyKey() } = options;
    const response = await this.#call("POST", "/plants", options, {
      headers: { "idempotency-key": idempotencyKey },
      body: renderDraft(draft),
      idempotencyKey,
    });
    return parse(response, 201, ({ text, headers }) => ({
      ...requireTexts(JSON.parse(text)),
      id: parseId(headers.get("location")?.split("/").at(-1)),
      etag: readEtag(headers),
      replayed: headers.get("idempotency-replayed") === "true",
    }));
  }

  /**
   * Creates plants in order, with a result for each: one that is refused stops no other. Resolves
   * once all are durable. Retries are safe, including a second call with the same plants and key.
   * If a plant is invalid: a problem, `invalid-request`, and none of its request's up to 10,000
   * plants is stored.
   */
  async createMany(
    drafts: Iterable<PlantDraft> | AsyncIterable<PlantDraft>,
    options: CreateManyOptions = {},
  ): Promise<CreateResult[]> {
    const { idempotencyKey = makeIdempotencyKey() } = options;
    if (idempotencyKey.length > manyKeyCharactersMax) {
      throw new RangeError(`The key must have at most ${manyKeyCharactersMax} characters.`);
    }
    const results: CreateResult[] = [];
    for await (const items of toBulks(drafts, renderDraft)) {
      const key = results.length === 0 ? idempotencyKey : `${idempotencyKey}.${results.length}`;
      const response = await this.#call("POST", "/plants/bulk", options, {
        headers: { "idempotency-key": key },
        body: `[${items.join()}]`,
        idempotencyKey,
      });
      const counted = { ...response, plantsBefore: results.length };
      const parsed = parse(counted, 200, ({ text }) => parseResults(text, items.length));
      for (const result of parsed) results.push(result);
    }
    return results;
  }

  /** No such plant: a problem, `not-found`. */
  async get(id: bigint | number, options: CallOptions = {}): Promise<StoredPlant> {
    return parse(await this.#call("GET", plantPath(id), options), 200, parsePlant);
  }

  /** Resolves to `undefined` if there is no such plant. */
  async find(id: bigint | number, options: CallOptions = {}): Promise<StoredPlant | undefined> {
    try {
      return await this.get(id, options);
    } catch (error) {
      if (!hasCode(error, "not-found")) throw error;
      return undefined;
    }
  }

  /**
   * Replaces the plant with this id, or creates it. Resolves once it is durable. If a precondition
   * doesn't hold: a problem, `precondition-failed`.
   */
  async put(id: bigint | number, draft: PlantDraft, options: PutOptions = {}): Promise<PutPlant> {
    const response = await this.#call("PUT", plantPath(id), options, {
      headers: { "if-match": options.ifMatch, "if-none-match": options.ifNoneMatch },
      body: renderDraft(draft),
    });
    const { name, tag = "" } = draft;
    const sent = { name, tag } satisfies Record<PlantField, string>;
    const stored = await this.#findStored(response, id, sent, options);
    const created = response.status === 201;
    return { ...(stored ?? parse(response, created ? 201 : 200, parsePlant)), created };
  }

  /**
   * Changes the given fields of a plant, and keeps what others change in the others. Resolves once
   * it is durable. If `ifMatch` doesn't hold: a problem, `precondition-failed`.
   */
  async update(
    id: bigint | number,
    change: PlantChange,
    options: UpdateOptions = {},
  ): Promise<StoredPlant> {
    const response = await this.#call("PATCH", plantPath(id), options, {
      headers: { "if-match": options.ifMatch },
      body: JSON.stringify(change),
    });
    const stored = await this.#findStored(response, id, change, options);
    return stored ?? parse(response, 200, parsePlant);
  }

  /** The plant, if an earlier try may have changed it, and so made its own precondition fail. */
  async #findStored(
    { isRepeated, status }: ClientResponse,
    id: bigint | number,
    change: PlantChange,
    options: CallOptions,
  ): Promise<StoredPlant | undefined> {
    if (!isRepeated || status !== 412) return undefined;
    const plant = await this.find(id, options);
    const given = Object.entries(change).filter(([, value]) => value !== undefined);
    const isStored = given.every(([field, value]) => plant?.[field as PlantField] === value);
    return isStored ? plant : undefined;
  }

  async me(options: CallOptions = {}): Promise<Me> {
    const response = await this.#call("GET", "/me", options);
    return parse(response, 200, ({ text }) => {
      const me: Me = JSON.parse(text);
      if (typeof me.garden !== "string") throw new TypeError("A field is missing.");
      return me;
    });
  }

  /** The plants by id, fetched page by page while they are consumed. */
  async *list(options: ListOptions = {}): AsyncGenerator<Plant, void, undefined> {
    for await (const page of this.pages(options)) yield* page;
  }

  /** The same as `list`, a page at a time. */
  async *pages(options: ListOptions = {}): AsyncGenerator<Plant[], void, undefined> {
    const { limit = Number.POSITIVE_INFINITY, pageSize = pageSizeMax } = options;
    let { after } = options;
    for (let remaining = limit; remaining !== 0; ) {
      if (pageSize === 0) throw new RangeError("A page must have at least one plant.");
      // NaN goes to the service, which refuses it.
      const pageLimit = remaining >= pageSize ? pageSize : remaining;
      const { plants, next } = await this.page({ ...options, limit: pageLimit, after });
      remaining -= plants.length;
      if (plants.length > 0) yield plants;
      if (next === undefined) return;
      after = next;
    }
  }

  /** One page of up to `limit` plants, at most 1,000. */
  async page(options: Omit<ListOptions, "pageSize"> = {}): Promise<Page> {
    const { after, tag, q, order } = options;
    const limit = Math.min(options.limit ?? pageSizeMax, pageSizeMax);
    const position = after === undefined ? after : formatId(after);
    const query = renderQuery({ limit, include: "id", after: position, tag, q, order });
    const response = await this.#call("GET", `/plants?${query}`, options);
    return parse(response, 200, ({ text, headers }) => {
      const plants = parsePlants(text);
      // With a limit of 0, the link repeats the position we asked for.
      const next = limit === 0 ? undefined : parseNext(headers, position);
      return { plants, next: next === undefined ? next : parseId(next) };
    });
  }

  /** The tags in code point order, with how many plants have each, fetched page by page. */
  async *tags(options: TagsOptions = {}): AsyncGenerator<TagCount, void, undefined> {
    const { limit = Number.POSITIVE_INFINITY } = options;
    let { after } = options;
    for (let remaining = limit; remaining !== 0; ) {
      const query = renderQuery({ limit: Math.min(remaining, pageSizeMax), after });
      const response = await this.#call("GET", `/tags?${query}`, options);
      const { tags, next } = parse(response, 200, ({ text, headers }) => ({
        tags: parseTags(text),
        next: parseNext(headers, after),
      }));
      remaining -= tags.length;
      yield* tags;
      if (next === undefined) return;
      after = next;
    }
  }

  /**
   * What happens in the garden, as it happens: each event once and in order. It reconnects, and
   * goes on until `signal` is aborted or the loop is left. If the events after the last one are no
   * longer kept: a problem, `gone`. List the plants again, and start over.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<PlantEvent, void, undefined> {
    const { after, signal } = options;
    const start = after ?? (await this.me(options)).lastEvent;
    const readPage = (position: number | undefined, isFirst: boolean) =>
      this.eventPage({ ...options, ...(isFirst ? {} : endlessPolicy), after: position });
    const openStream = async (position: number) => {
      const path = `/events?after=${position}`;
      const headers = { accept: "text/event-stream" };
      return (await this.#call("GET", path, { ...streamPolicy, signal }, { headers })).stream;
    };
    for await (const some of followEvents({ readPage, openStream }, start, signal)) {
      for (const event of some) {
        signal?.throwIfAborted();
        yield event;
      }
    }
  }

  /** One page of up to `limit` events. */
  async eventPage(options: EventPageOptions = {}): Promise<EventPage> {
    const { after, limit = pageSizeMax } = options;
    const query = renderQuery({ limit, after });
    const response = await this.#call("GET", `/events?${query}`, options);
    return parse(response, 200, ({ text, headers }) => {
      const events = parseEvents(text, after);
      const isLast = parseNext(headers) === undefined;
      return { events, next: isLast ? undefined : events.at(-1)?.seq };
    });
  }

  /** Resolves once the deletion is durable. No such plant: a problem, `not-found`. */
  async delete(id: bigint | number, options: DeleteOptions = {}): Promise<Deletion> {
    const headers = { "if-match": options.ifMatch };
    const response = await this.#call("DELETE", `/plants/${formatId(id)}`, options, { headers });
    if (response.status === 204) return { confirmed: true };
    const problem = new PlantStoreProblem(response);
    // The code, not the status: a gateway that can't reach the service sends 404, too.
    if (response.isRepeated && problem.code === "not-found") return { confirmed: false };
    throw problem;
  }

  /**
   * Deletes plants, up to 10,000 with a request, with a result for each in their order. Ids without
   * a plant are no error, so a call that failed can be repeated.
   */
  async deleteMany(
    ids: Iterable<bigint | number> | AsyncIterable<bigint | number>,
    options: ManyOptions = {},
  ): Promise<DeleteResult[]> {
    const results: DeleteResult[] = [];
    for await (const each of this.#sendIds("/plants/bulk-delete", ids, "", options)) {
      // An earlier try may have deleted the plant although its response was lost.
      if (each.isMissing && !each.isRepeated) results.push({ status: 404 });
      else results.push({ status: 204, confirmed: !each.isMissing });
    }
    return results;
  }

  /** Changes the given fields of many plants. 404: there is no such plant. */
  async updateMany(
    ids: Iterable<bigint | number> | AsyncIterable<bigint | number>,
    change: PlantChange,
    options: ManyOptions = {},
  ): Promise<UpdateResult[]> {
    const results: UpdateResult[] = [];
    const set = `,"set":${JSON.stringify(change)}`;
    for await (const { isMissing } of this.#sendIds("/plants/bulk-update", ids, set, options)) {
      results.push({ status: isMissing ? 404 : 200 });
    }
    return results;
  }

  async *#sendIds(
    path: string,
    ids: Iterable<bigint | number> | AsyncIterable<bigint | number>,
    rest: string,
    options: ManyOptions,
  ) {
    for await (const bulk of toBulks(ids, formatId)) {
      const body = `{"ids":[${bulk.join()}]${rest}}`;
      const response = await this.#call("POST", path, options, { body });
      const missing = parse(response, 200, ({ text }) => parseMissing(text));
      for (const id of bulk) {
        yield { isMissing: missing.has(id), isRepeated: response.isRepeated };
      }
    }
  }

  async #call(
    method: string,
    path: string,
    options: CallPolicy,
    { headers: given = {}, body, idempotencyKey }: CallDetails = {},
  ): Promise<ClientResponse> {
    const headers = new Headers(this.#headers);
    if (body !== undefined) headers.set("content-type", "application/json");
    for (const [name, value] of Object.entries(given)) {
      if (value !== undefined) headers.set(name, value);
    }
    const { signal, stop } = options;
    const request = { url: this.#url + path, method, headers, body, idempotencyKey, signal, stop };
    const policy = choosePolicy(this.#options, options);
    let spentMs = 0;
    const sendWith = async (authorization: Promise<string>, isRepeated?: boolean) => {
      // Somebody may have to sign in first, which is no part of the request.
      headers.set("authorization", await authorization);
      const startedAtMs = performance.now();
      const deadlineMs = policy.deadlineMs - spentMs;
      const response = await send({ ...request, isRepeated }, { ...policy, deadlineMs });
      spentMs = performance.now() - startedAtMs;
      return response;
    };
    const used = this.#authorize();
    const first = await sendWith(used);
    if (first.status !== 401 || !this.#askToken) return first;
    // Unless another call has asked for a new token already.
    if (this.#authorization === used) this.#authorization = undefined;
    return sendWith(this.#authorize(), first.isRepeated);
  }

  /** Asks for a token if there is none: once for all calls that need it. */
  #authorize(): Promise<string> {
    if (this.#authorization) return this.#authorization;
    const asked = Promise.resolve(this.#askToken?.()).then(toAuthorization);
    this.#authorization = asked;
    asked.catch(() => {
      // The next call asks again.
      if (this.#authorization === asked) this.#authorization = undefined;
    });
    return asked;
  }
}

/** What the call asks for comes first, then what the client was made with. */
function choosePolicy(own: PlantStoreOptions, call: CallPolicy): RetryPolicy {
  const retries = call.retries ?? own.retries ?? 10;
  return {
    fetch: own.fetch ?? ((url, init) => fetch(url, init)),
    retries,
    limitedRetries: call.limitedRetries ?? own.limitedRetries ?? retries,
    retryAfterMsMax: own.retryAfterMsMax ?? 60_000,
    timeoutMs: call.timeoutMs ?? own.timeoutMs ?? 30_000,
    deadlineMs: call.deadlineMs ?? own.deadlineMs ?? Number.POSITIVE_INFINITY,
    onResponse: own.onResponse,
  };
}

function toAuthorization(text: string | undefined): string {
  // People paste it as they copied it, from a header or with a line break after it.
  const token = text?.trim().replace(/^bearer\s+/i, "");
  if (!token) throw new TypeError("A token is needed.");
  // What no header can hold fails here, not as a call without a response.
  if (!/^[!-~]+$/.test(token)) throw new TypeError("A token has only ASCII characters, no spaces.");
  return `Bearer ${token}`;
}

function plantPath(id: bigint | number): string {
  return `/plants/${formatId(id)}?include=id`;
}
