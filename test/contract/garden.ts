/**
 * What contract tests call: the whole service without its socket, on a real storage, with a new
 * garden for every test. It checks every response that `call` returns: for the headers that all
 * responses have, the form of errors, and all that the OpenAPI document says.
 *
 *     onEachEngine(({ call }) => {
 *       test("lists a plant", async () => {
 *         await call("POST /plants", 201, { name: "Fern" });
 *         const { json } = await call("GET /plants", 200);
 *         expect(json).toEqual([{ name: "Fern", tag: "" }]);
 *       });
 *     });
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "bun:test";
import { issueToken, type NewToken } from "../../src/auth/opaque-token.ts";
import { type Wired, wire } from "../../src/process/wire.ts";
import { readConfig } from "../../src/shared/config.ts";
import { createLog } from "../../src/shared/log.ts";
import { deadline } from "../../src/shared/promises.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { makePlace, type Place } from "../../testing/audited-store.ts";
import { EventStreamReader } from "../../testing/event-reader.ts";
import { create } from "../../testing/tested-storage.ts";
import { ApiDocument } from "./documented-responses.ts";
import {
  checkCaching,
  checkCommonHeaders,
  checkCors,
  checkProblem,
  Reply,
} from "./reply-checks.ts";

export const engines = ["SQLite", "PostgreSQL"] as const;
type ServiceConfig = Partial<Parameters<typeof wire>[0]>;

/** `null` leaves out a header that would be sent otherwise. */
type SentHeaders = Readonly<Record<string, string | null>>;
/**
 * An object is sent as JSON, in which a bigint is a number with all its digits. Text and bytes are
 * sent as they are.
 */
export type SentBody = object | string | undefined;
/** Sends a request such as `GET /plants?limit=1`, and fails if it gets another status. */
type Call = (
  request: string,
  status: number,
  body?: SentBody,
  headers?: SentHeaders,
) => Promise<Reply>;

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

/** Made of digits, so that a bigint in JSON loses none of them. */
const rawJson = (JSON as unknown as { rawJSON(digits: string): object }).rawJSON;

function toText(body: SentBody): string | undefined {
  if (typeof body !== "object") return body;
  return JSON.stringify(body, (_, value) =>
    typeof value === "bigint" ? rawJson(`${value}`) : value,
  );
}

/** A request without the end of its body, which the test sends piece by piece. */
class UnfinishedRequest {
  readonly response: Promise<Response>;
  readonly #body: WritableStreamDefaultWriter<Uint8Array>;

  constructor(send: (body: ReadableStream<Uint8Array>) => Promise<Response>) {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    this.#body = writable.getWriter();
    this.response = send(readable);
  }

  /** Resolves once the service has read this piece. Fails if it reads no more. */
  write(piece: string | Uint8Array): Promise<void> {
    return this.#body.write(typeof piece === "string" ? Buffer.from(piece) : piece);
  }

  /** Ends the body, and waits for the response. */
  end(): Promise<Response> {
    // It fails if the service refused the request before it had read the whole body.
    this.#body.close().catch(() => {});
    return this.response;
  }
}

const defaultStepMs = 0.5;

/**
 * A clock on which time passes only when the service reads it. So no request waits too long because
 * the machine is busy, and a test fails on each 503 that it didn't ask for.
 */
class TestClock {
  /** How much time passes with each reading. A long step makes everything the service does slow. */
  stepMs = defaultStepMs;
  #nowMs = 0;

  readonly now = (): number => {
    this.#nowMs += this.stepMs;
    return this.#nowMs;
  };

  advance(ms: number): void {
    this.#nowMs += ms;
  }
}

/** Far longer than a response takes, and shorter than a test may. */
const patienceMs = 30_000;

/** One storage and one service for all tests of a block. */
export class TestService {
  readonly clock = new TestClock();
  /** Where the storage is, for a second one that a test opens. */
  database = "";
  storage!: Storage;
  /** The parts of the running service. */
  parts!: Wired;
  /** What the service publishes at `/openapi.json`. */
  document!: ApiDocument;
  /** The base path: empty, or one such as `/v1`. */
  readonly base: string;
  #logged = "";
  readonly log = createLog("json", (lines) => {
    this.#logged += lines;
  });

  constructor(readonly config: ServiceConfig) {
    this.base = config.basePath ?? "";
  }

  /** Sends a request below the base path, as a runtime hands it over. Checks nothing. */
  async fetch(request: string, init: RequestInit = {}): Promise<Response> {
    const [method = "GET", target = "/"] = request.split(" ");
    const headers = new Headers(init.headers);
    const { body } = init;
    if (!headers.has("host")) headers.set("host", "plants.test");
    if (typeof body === "string" || body instanceof Uint8Array) {
      headers.set("content-length", String(Buffer.byteLength(body)));
    }
    const url = `http://plants.test${this.base}${target}`;
    return this.parts.pipeline.fetch(new Request(url, { ...init, method, headers }));
  }

  async makeToken(fields: NewToken): Promise<string> {
    const { token } = await issueToken(this.storage, fields, Date.now());
    return token;
  }

  /** Revokes a token, and makes the service notice. */
  async revoke(token: string): Promise<void> {
    const { authenticator } = this.parts;
    const { credential } = await authenticator.authenticate(token);
    await this.storage.revokeToken(credential, Date.now());
    await authenticator.refresh();
  }

  /** All that the service has logged so far. */
  readLog(): string {
    this.log.flush();
    return this.#logged;
  }

  /** Fails unless a response keeps what all responses promise, and what is documented for this. */
  check(request: string, sent: string | undefined, reply: Reply): void {
    const [method = "", target = ""] = request.split(" ");
    const [path = ""] = target.split("?");
    checkCommonHeaders(reply);
    checkCaching(path, reply);
    if (this.config.corsOrigins === undefined) checkCors(path, reply);
    if (reply.status >= 400 && method !== "HEAD") checkProblem(reply);
    this.document.check(method, path, sent, reply);
  }
}

/** A service for the tests of this block, which its hooks start and stop. */
export function openService(
  engine: (typeof engines)[number],
  config: ServiceConfig = {},
): TestService {
  const service = new TestService(config);
  let place: Place | undefined;
  beforeAll(async () => {
    place = await makePlace(engine === "SQLite" ? "sqlite" : "postgres");
    service.database = place.database;
    service.storage = await openStorage(place.database, {
      isServing: true,
      plantsMax: config.usage?.plantsMax,
      withoutEvents: config.events === "off",
    });
    const { storage, log, clock } = service;
    const wholeConfig = { ...readConfig({}, {}), ...config };
    service.parts = wire(wholeConfig, storage, log, undefined, clock.now);
    await service.parts.authenticator.refresh();
    const document = await service.fetch("GET /openapi.json");
    service.document = new ApiDocument(await document.json());
  });
  afterAll(async () => {
    await service.storage?.close();
    await place?.[Symbol.asyncDispose]();
  });
  return service;
}

type Garden = ReturnType<typeof openGarden>;
let gardensMade = 0;

/** A service for the tests of this block, a new garden for each test, and ways to call them. */
export function openGarden(...serviceOptions: Parameters<typeof openService>) {
  const service = openService(...serviceOptions);
  const tokens = new Map<string, Promise<string>>();
  const streams: EventStreamReader[] = [];
  const unfinished: UnfinishedRequest[] = [];
  let name: string;
  beforeEach(() => {
    name = `garden-${++gardensMade}`;
    tokens.clear();
    service.clock.stepMs = defaultStepMs;
  });
  // Otherwise what a test leaves open would count in the next ones.
  afterEach(async () => {
    await Promise.allSettled(streams.splice(0).map((stream) => stream.close()));
    await Promise.allSettled(unfinished.splice(0).map((request) => request.end()));
  });

  /** Makes, once for each test, a token to write, to read only, or to write to another garden. */
  function token(kind: "write" | "read" | "other" = "write"): Promise<string> {
    const scope = kind === "read" ? "read" : "write";
    const garden = kind === "other" ? `${name}-other` : name;
    const made = tokens.get(kind) ?? service.makeToken({ user: "ann", garden, scope });
    tokens.set(kind, made);
    return made;
  }

  /** Sends a request as `call` does, and leaves its response unread and unchecked. */
  async function fetch(
    request: string,
    body?: SentBody,
    more: SentHeaders = {},
  ): Promise<Response> {
    const headers = new Headers("Authorization" in more ? {} : bearer(await token()));
    if (body !== undefined) headers.set("Content-Type", "application/json");
    for (const [name, value] of Object.entries(more)) {
      if (value === null) headers.delete(name);
      else headers.set(name, value);
    }
    const sent = body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : toText(body);
    const init = sent === undefined ? { headers } : { headers, body: sent };
    return deadline(service.fetch(request, init), patienceMs, () => {
      throw new Error(`${request} got no response within ${patienceMs} ms.`);
    });
  }

  /** Calls with a token that may write. */
  const call: Call = async (request, status, body, headers = {}) => {
    const response = await fetch(request, body, headers);
    // The runtime sends no body to HEAD (see raw-bytes.test.ts), and a stream doesn't end.
    const isStream = response.headers.get("Content-Type") === "text/event-stream";
    if (isStream) await response.body?.cancel();
    const text = isStream || request.startsWith("HEAD ") ? "" : await response.text();
    const reply = new Reply(response, text, service.base);
    const sent = body instanceof Uint8Array ? undefined : toText(body);
    if (status !== reply.status) {
      const asked = `${request} ${sent?.slice(0, 200) ?? ""}`.trimEnd();
      const got = `${reply.status}: ${text.slice(0, 2_000)}`;
      throw new Error(`${asked} must be ${status}, and is ${got}`);
    }
    service.check(request, sent, reply);
    return reply;
  };

  /** Calls with a token that may only read. */
  const reader: Call = async (request, status, body, headers) =>
    call(request, status, body, { ...bearer(await token("read")), ...headers });

  /** Calls with a token to another garden, which may write there. */
  const stranger: Call = async (request, status, body, headers) =>
    call(request, status, body, { ...bearer(await token("other")), ...headers });

  /** Calls without a token. */
  const anonymous: Call = (request, status, body, headers) =>
    call(request, status, body, { Authorization: null, ...headers });

  /** Sends the same request this often at once, and returns the statuses, the lowest first. */
  async function atOnce(count: number, ...request: Parameters<typeof fetch>): Promise<number[]> {
    const replies = await Promise.all(Array.from({ length: count }, () => fetch(...request)));
    return replies.map(({ status }) => status).toSorted((a, b) => a - b);
  }

  /** Starts a request, and leaves it to the test to send its body. It ends with the test. */
  async function startRequest(
    request: string,
    more: Readonly<Record<string, string>>,
  ): Promise<UnfinishedRequest> {
    const authorization = bearer(await token());
    const headers = { ...authorization, "Content-Type": "application/json", ...more };
    const started = new UnfinishedRequest((body) => service.fetch(request, { headers, body }));
    unfinished.push(started);
    return started;
  }

  /** Starts the same request this often. */
  function startRequests(
    count: number,
    ...request: Parameters<typeof startRequest>
  ): Promise<UnfinishedRequest[]> {
    return Promise.all(Array.from({ length: count }, () => startRequest(...request)));
  }

  /** Stores plants in this garden without a request; absent ids are assigned. */
  async function plant(plants: readonly Parameters<typeof create>[0][]): Promise<void> {
    const writes = plants.map((fields) => create({ garden: name, ...fields }));
    // Many in one transaction can take longer than a busy database has for it.
    while (writes.length > 0) await service.storage.apply(writes.splice(0, 1_000));
  }

  /** Stores plants with these names and the ids 1, 2 and so on, without a request. */
  const grow = (...names: readonly string[]): Promise<void> =>
    plant(names.map((name, index) => ({ id: BigInt(index + 1), name })));

  /** Returns the names in a list. */
  async function list(query = ""): Promise<string[]> {
    const { json } = await call(`GET /plants?${query}`, 200);
    return json.map((plant: { name: string }) => plant.name);
  }

  /** Reads a page and follows the links from there to the last one. Returns the bodies. */
  async function walk(target: string): Promise<Reply["json"][]> {
    const pages = [];
    for (let next: string | undefined = target; next !== undefined; ) {
      const page: Reply = await call(`GET ${next}`, 200);
      pages.push(page.json);
      expect(page.next).not.toBe(next);
      next = page.next;
    }
    return pages;
  }

  /** Opens a stream of events, which ends with the test. */
  async function listen(more: SentHeaders = {}): Promise<EventStreamReader> {
    const headers = { Accept: "text/event-stream", ...more };
    const response = await fetch("GET /events", undefined, headers);
    if (response.status !== 200) {
      throw new Error(
        `GET /events must be 200, and is ${response.status}: ${await response.text()}`,
      );
    }
    service.check("GET /events", undefined, new Reply(response, "", service.base));
    expect(response.headers.get("X-Accel-Buffering")).toBe("no");
    const stream = new EventStreamReader(response);
    streams.push(stream);
    return stream;
  }

  return {
    service,
    token,
    fetch,
    call,
    reader,
    stranger,
    anonymous,
    atOnce,
    startRequest,
    startRequests,
    plant,
    grow,
    list,
    walk,
    listen,
    /** The garden of this test: another one in each. */
    get name() {
      return name;
    },
  };
}

/**
 * Defines the same tests for each engine. The service on SQLite has a base path, unless the
 * configuration says otherwise, so every test runs with one and without.
 */
export function onEachEngine(define: (garden: Garden) => void, config: ServiceConfig = {}): void {
  describe.each(engines)("on %s:", (engine) => {
    define(openGarden(engine, { basePath: engine === "SQLite" ? "/a/v1" : "", ...config }));
  });
}
