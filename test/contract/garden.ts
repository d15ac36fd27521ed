/**
 * The whole service without its socket, on a real storage, with a new garden for every test. Each
 * response must keep what all responses promise, and be as the OpenAPI document says.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "bun:test";
import { issueToken, type NewToken } from "../../src/auth/opaque-token.ts";
import { problemInfo } from "../../src/http/problem.ts";
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

export const engines = ["SQLite", "PostgreSQL"] as const;
type ServiceConfig = Partial<Parameters<typeof wire>[0]>;

/** `null` leaves a header out that would be sent otherwise. */
type SentHeaders = Readonly<Record<string, string | null>>;
/** An object is sent as JSON with the digits of every bigint; other bodies are sent as they are. */
export type SentBody = object | string | undefined;
/** Sends a request such as `GET /plants?limit=1`, and fails if the status is another one. */
type Call = (
  request: string,
  status: number,
  body?: SentBody,
  headers?: SentHeaders,
) => Promise<Reply>;

const codes = new Map(
  Object.entries(problemInfo).map(([code, { status }]) => [status, code] as const),
);
const exposed =
  "Location, Link, X-Request-Id, ETag, Idempotency-Replayed, Retry-After, RateLimit, " +
  "RateLimit-Policy, WWW-Authenticate";
/** Without those that a path may have below it. */
const openPath = /^(\/(docs|openapi\.json|favicon\.ico|healthz|readyz|metrics|assets\/.+)?)?$/;

const rawNumber = (JSON as unknown as { rawJSON(digits: string): object }).rawJSON;
const toJson = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? rawNumber(`${each}`) : each));
const toText = (body: SentBody) => (typeof body === "object" ? toJson(body) : body);
const keepDigits = (_: string, value: unknown, context: { source: string }) =>
  typeof value === "number" && !Number.isSafeInteger(value) ? BigInt(context.source) : value;
export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

class Reply {
  readonly status: number;
  readonly headers: Headers;

  constructor(
    response: Response,
    readonly text: string,
    private readonly base: string,
  ) {
    this.status = response.status;
    this.headers = response.headers;
  }

  /** The body; an integer that no double can hold is a bigint. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at it as the JSON that it is.
  get json(): any {
    return JSON.parse(this.text, keepDigits as (key: string, value: unknown) => unknown);
  }

  /** Where the validation errors are: pointers, parameters and headers, sorted, each once. */
  get errors(): string[] {
    const errors: Record<string, string>[] = this.json.errors;
    const places = errors.map((each) => each.pointer ?? each.parameter ?? each.header ?? "?");
    return [...new Set(places)].toSorted();
  }

  /** The target of `Link` below the base path; absent at the end of a list. */
  get next(): string | undefined {
    const link = this.headers.get("Link");
    if (link === null) return undefined;
    expect(link).toMatch(new RegExp(`^<${this.base}/[^>]*>; rel="next"$`));
    return link.slice(1 + this.base.length, link.indexOf(">"));
  }
}

/** How much time passes with each look at the clock, unless a test says otherwise. */
const lookMs = 0.5;

/**
 * Time passes only when the service looks at its clock. So no request waits too long because the
 * machine is busy, and a test fails on each 503 that it didn't ask for.
 */
class TestClock {
  lookMs = lookMs;
  #nowMs = 0;

  readonly now = (): number => {
    this.#nowMs += this.lookMs;
    return this.#nowMs;
  };
}

/** Far longer than a response takes, and shorter than a test may. */
const patienceMs = 30_000;

/** One storage and one app for the tests of a file. */
export class TestService {
  readonly clock = new TestClock();
  database = "";
  storage!: Storage;
  parts!: Wired;
  document!: ApiDocument;
  readonly base: string;
  #logged = "";
  readonly log = createLog("json", (lines) => {
    this.#logged += lines;
  });

  constructor(readonly config: ServiceConfig) {
    this.base = config.basePath ?? "";
  }

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
    return (await issueToken(this.storage, fields, Date.now())).token;
  }

  /** Revokes a token, and this service notices. */
  async revoke(token: string): Promise<void> {
    const { authenticator } = this.parts;
    const { credential } = await authenticator.authenticate(token);
    await this.storage.revokeToken(credential, Date.now());
    await authenticator.refresh();
  }

  readLog(): string {
    this.log.flush();
    return this.#logged;
  }

  /** What all responses promise, whatever was asked. */
  check(request: string, sent: string | undefined, reply: Reply): void {
    const { status, headers } = reply;
    const [method = "", target = ""] = request.split(" ");
    const [path = ""] = target.split("?");
    const id = headers.get("X-Request-Id");
    expect(id).toMatch(/^[\w.-]{1,128}$/);
    expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
    for (const name of ["Set-Cookie", "Access-Control-Allow-Credentials"]) {
      expect(headers.has(name)).toBe(false);
    }
    if (this.config.corsOrigins === undefined) {
      const isProbe = /^\/(healthz|readyz|metrics)$/.test(path);
      const cors = ["Allow-Origin", "Expose-Headers"].map((name) => `Access-Control-${name}`);
      expect(cors.map((name) => headers.get(name))).toEqual(
        isProbe ? [null, null] : ["*", exposed],
      );
    }
    if (!openPath.test(path) || status === 404) {
      // A proxy that compressed a response with an ETag would make it weak.
      const isTagged = headers.has("ETag");
      expect(headers.get("Cache-Control")).toBe(isTagged ? "no-store, no-transform" : "no-store");
    }
    if (status >= 400 && method !== "HEAD") {
      expect(headers.get("Content-Type")).toBe("application/problem+json");
      const type = `urn:plantstore:problem:${codes.get(status)}`;
      const [title, detail] = [expect.any(String), expect.any(String)];
      expect(reply.json).toMatchObject({ type, title, status, detail, requestId: id });
      expect("errors" in reply.json).toBe(status === 400);
    }
    this.document.check(method, path, sent, reply);
  }
}

/** The hooks open and close it. */
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
    const whole = { ...readConfig({}, {}), ...config };
    service.parts = wire(whole, storage, log, undefined, clock.now);
    await service.parts.authenticator.refresh();
    service.document = new ApiDocument(await (await service.fetch("GET /openapi.json")).json());
  });
  afterAll(async () => {
    await service.storage?.close();
    await place?.[Symbol.asyncDispose]();
  });
  return service;
}

type Garden = ReturnType<typeof openGarden>;
let gardens = 0;

/** A garden for the tests of this block, new for each, and ways to call the service. */
export function openGarden(...of: Parameters<typeof openService>) {
  const service = openService(...of);
  const tokens = new Map<string, Promise<string>>();
  const readers: EventStreamReader[] = [];
  let name: string;
  beforeEach(() => {
    name = `garden-${++gardens}`;
    tokens.clear();
    service.clock.lookMs = lookMs;
  });
  // Otherwise the streams of a test that failed would count in the next ones.
  afterEach(async () => {
    await Promise.allSettled(readers.splice(0).map((each) => each.close()));
  });

  /** To write, to read only, or to write to another garden. */
  function token(kind: "write" | "read" | "other" = "write"): Promise<string> {
    const scope = kind === "read" ? "read" : "write";
    const garden = kind === "other" ? `${name}-other` : name;
    const made = tokens.get(kind) ?? service.makeToken({ user: "ann", garden, scope });
    tokens.set(kind, made);
    return made;
  }

  /** Sends a request as `call` does, and leaves the response unread and unchecked. */
  async function fetch(request: string, body?: SentBody, more: SentHeaders = {}) {
    const headers = new Headers("Authorization" in more ? {} : bearer(await token()));
    if (body !== undefined) headers.set("Content-Type", "application/json");
    for (const [name, value] of Object.entries(more)) {
      if (value === null) headers.delete(name);
      else headers.set(name, value);
    }
    const sent = body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : toText(body);
    const init = { headers, ...(sent !== undefined && { body: sent }) };
    return deadline(service.fetch(request, init), patienceMs, () => {
      throw new Error(`${request} got no response within ${patienceMs} ms.`);
    });
  }

  const call: Call = async (request, status, body, headers = {}) => {
    const response = await fetch(request, body, headers);
    // The runtime sends no body to HEAD (see raw-bytes.test.ts), and a stream doesn't end.
    const isStream = response.headers.get("Content-Type") === "text/event-stream";
    if (isStream) await response.body?.cancel();
    const text = isStream || request.startsWith("HEAD ") ? "" : await response.text();
    const reply = new Reply(response, text, service.base);
    if (status !== reply.status) {
      const got = `${reply.status}: ${text.slice(0, 2_000)}`;
      throw new Error(`${request} must be ${status}, and is ${got}`);
    }
    service.check(request, body instanceof Uint8Array ? undefined : toText(body), reply);
    return reply;
  };
  const callWith =
    (kind: "read" | "other"): Call =>
    async (request, status, body, headers) =>
      call(request, status, body, { ...bearer(await token(kind)), ...headers });
  const anonymous: Call = (request, status, body, headers) =>
    call(request, status, body, { Authorization: null, ...headers });

  /** Sends the same request this often at once, and returns the statuses, the lowest first. */
  async function atOnce(count: number, ...sent: Parameters<typeof fetch>): Promise<number[]> {
    const replies = await Promise.all(Array.from({ length: count }, () => fetch(...sent)));
    return replies.map(({ status }) => status).toSorted((a, b) => a - b);
  }

  /** Stores plants in this garden without a request; absent ids are assigned. */
  async function plant(plants: readonly Parameters<typeof create>[0][]): Promise<void> {
    const writes = plants.map((each) => create({ garden: name, ...each }));
    // Many in one transaction can take longer than a busy database has for it.
    while (writes.length > 0) await service.storage.apply(writes.splice(0, 1_000));
  }

  /** Stores plants with these names, and the ids 1, 2 and so on. */
  const grow = (...names: readonly string[]): Promise<void> =>
    plant(names.map((name, index) => ({ id: BigInt(index + 1), name })));

  /** The names in a list. */
  async function list(query = ""): Promise<string[]> {
    const { json } = await call(`GET /plants?${query}`, 200);
    return json.map((plant: { name: string }) => plant.name);
  }

  /** Follows the links from here, and returns the pages. */
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

  /** A stream of events. */
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
    const reader = new EventStreamReader(response);
    readers.push(reader);
    return reader;
  }

  return {
    ...{ service, token, fetch, call, anonymous, atOnce, plant, grow, list, walk, listen },
    /** With a token that may only read. */
    reader: callWith("read"),
    /** With a token to another garden. */
    stranger: callWith("other"),
    get name() {
      return name;
    },
  };
}

/** Defines the tests once for each engine, and once of them below a base path. */
export function onEachEngine(define: (garden: Garden) => void, config: ServiceConfig = {}): void {
  describe.each(engines)("on %s:", (engine) => {
    define(openGarden(engine, { basePath: engine === "SQLite" ? "/a/v1" : "", ...config }));
  });
}
