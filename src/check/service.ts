/** The service under check: sends requests, and waits where it limits the rate. */
import { setTimeout } from "node:timers/promises";
import { type Address, exchange, NoResponse, type RawResponse } from "./wire.ts";

/** An array repeats a header; an empty one leaves it out. */
export type SentHeaders = Readonly<Record<string, string | readonly string[]>>;

interface RequestParts {
  readonly headers?: SentHeaders;
  readonly body?: Buffer | undefined;
  readonly until?: string | undefined;
}

/** The check can't begin. */
export class CannotCheck extends Error {
  constructor(
    readonly reason: "token-refused" | "not-empty" | "unusable",
    message: string,
  ) {
    super(message);
  }
}

/** The service breaks the contract. The message says what was expected and what came. */
export class Violation extends Error {
  constructor(
    message: string,
    readonly response: ServiceResponse,
  ) {
    super(message);
  }
}

type ErrorMember = "pointer" | "parameter" | "header" | "detail";
type FoundError = Readonly<Partial<Record<ErrorMember, unknown>>>;

/** A response, together with its request. */
export class ServiceResponse {
  readonly status: number;
  readonly text: string;
  readonly headers: RawResponse["headers"];
  /** Bytes that came where none may come. */
  readonly surplus: string;

  constructor(
    readonly request: string,
    raw: RawResponse,
  ) {
    this.status = raw.status;
    this.text = raw.body.toString("utf8");
    this.headers = raw.headers;
    this.surplus = raw.surplus.toString("utf8");
  }

  /** The values of a repeated header are joined by commas. */
  header(name: string): string | undefined {
    const found = this.headers.filter(([key]) => key.toLowerCase() === name.toLowerCase());
    return found.length === 0 ? undefined : found.map(([, value]) => value).join(", ");
  }

  /** The items of a comma-separated header, in lower case. */
  items(name: string): string[] {
    const items = (this.header(name) ?? "").toLowerCase().split(/\s*,\s*/);
    return items.filter((item) => item !== "");
  }

  /** The body as JSON, with all digits of every integer; `undefined` if it isn't JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a service may send anything.
  get json(): any {
    return parseJson(this.text);
  }

  /** What became of each plant of a bulk. */
  // biome-ignore lint/suspicious/noExplicitAny: a service may send anything.
  get results(): any[] {
    return itemsOf(this.json).filter((item) => "status" in item);
  }

  /** The validation errors of a problem. */
  get errors(): readonly FoundError[] {
    return itemsOf(this.json?.errors);
  }

  /** The id at the end of `Location`. */
  get locatedId(): bigint | undefined {
    const digits = /\/plants\/(-?\d{1,19})$/.exec(this.header("Location") ?? "")?.[1];
    return digits === undefined ? undefined : BigInt(digits);
  }

  /** A response without `X-Request-Id` comes from a proxy, or from the service's runtime. */
  get isFromProxy(): boolean {
    return this.header("X-Request-Id") === undefined;
  }

  /** Headers and body as they came. */
  get whole(): string {
    const lines = this.headers.map(([name, value]) => `${name}: ${value}`);
    return [`HTTP/1.1 ${this.status}`, ...lines, "", this.text + this.surplus].join("\n");
  }
}

/** The objects in an array; none if it isn't one. */
function itemsOf(json: unknown): readonly object[] {
  return Array.isArray(json) ? json.filter((item) => item && typeof item === "object") : [];
}

function parseJson(text: string) {
  const keepDigits = (_key: string, value: unknown, context: { source: string }) =>
    typeof value === "number" && !Number.isSafeInteger(value) ? rawNumber(context.source) : value;
  try {
    return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown);
  } catch {
    return undefined;
  }
}

/** A number that `JSON.stringify` writes with these digits. */
export const rawNumber = (JSON as unknown as { rawJSON(digits: string): object }).rawJSON;

/** How long a response may take: longer than the slowest row needs. */
const timeoutMs = 25_000;
const triesMax = 5;
const retryAfterSecondsMax = 60;

export class Service {
  readonly basePath: string;
  readonly host: string;
  readonly #address: Address;
  /** How long the check has waited for the rate limit. */
  waitedSeconds = 0;

  constructor(
    address: string,
    /** Stops requests. */
    public signal: AbortSignal,
  ) {
    const url = new URL(address);
    const isSecure = url.protocol === "https:";
    const port = Number(url.port || (isSecure ? 443 : 80));
    this.basePath = url.pathname.replace(/\/+$/, "");
    this.host = url.host;
    this.#address = { host: url.hostname.replace(/^\[|\]$/g, ""), port, isSecure };
  }

  /**
   * Sends a request such as `GET /plants?limit=1`, and again after 429. Throws `NoResponse`, or
   * the signal's reason once it is aborted.
   */
  async send(request: string, parts: RequestParts = {}): Promise<ServiceResponse> {
    for (let tries = 1; ; tries++) {
      this.signal.throwIfAborted();
      const response = await this.#sendOnce(request, parts);
      const seconds = Number(response.header("Retry-After") ?? "1");
      const mayRetry = tries < triesMax && seconds <= retryAfterSecondsMax;
      if (response.status !== 429 || !mayRetry) return response;
      this.waitedSeconds += seconds;
      await setTimeout(seconds * 1_000, undefined, { signal: this.signal }).catch(() => {});
    }
  }

  async #sendOnce(request: string, parts: RequestParts): Promise<ServiceResponse> {
    const { headers, body = Buffer.alloc(0), until } = parts;
    const [method = "", target = ""] = request.split(" ");
    const all = { Host: this.host, Connection: "close", ...headers };
    const lines = Object.entries(all).flatMap(([name, values]) =>
      [values].flat().map((value) => `${name}: ${value}`),
    );
    const head = [`${method} ${this.basePath}${target} HTTP/1.1`, ...lines, "", ""];
    const bytes = Buffer.concat([Buffer.from(head.join("\r\n")), body]);
    const isHead = method === "HEAD";
    const response = await exchange(this.#address, bytes, { isHead, timeoutMs, until });
    const sent = head.join("\n") + body.toString("utf8");
    if (!(response instanceof NoResponse)) return new ServiceResponse(sent, response);
    throw new NoResponse(response.message, response.code, sent);
  }
}
