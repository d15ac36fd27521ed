/** The service under check: sends requests to it, and waits where it limits the rate. */
import { setTimeout } from "node:timers/promises";
import { exchange, NoAnswer, type Place, type WireAnswer } from "./wire.ts";

/** A list repeats a header, an empty one leaves it out. */
export type SentHeaders = Readonly<Record<string, string | readonly string[]>>;

interface RequestParts {
  readonly headers?: SentHeaders;
  readonly body?: Buffer | undefined;
  readonly timeoutMs?: number | undefined;
}

/** The check was told to stop. */
export class Interrupted extends Error {}

/** Nothing came back, or nothing that is HTTP. */
export class Unanswered extends Error {
  readonly code: string | undefined;

  constructor(
    readonly request: string,
    cause: NoAnswer,
  ) {
    super(cause.message, { cause });
    this.code = cause.code;
  }
}

/** A response, together with the request that it belongs to. */
export class ServiceResponse {
  readonly status: number;
  readonly text: string;
  readonly #wire: WireAnswer;

  constructor(
    readonly request: string,
    wire: WireAnswer,
  ) {
    this.status = wire.status;
    this.text = wire.body.toString("utf8");
    this.#wire = wire;
  }

  /** Values of a repeated header are joined by commas. */
  header(name: string): string | undefined {
    const found = this.#wire.headers.filter(([key]) => key.toLowerCase() === name.toLowerCase());
    return found.length === 0 ? undefined : found.map(([, value]) => value).join(", ");
  }

  /** The items of a header that is a list, in lower case. */
  items(name: string): string[] {
    const items = (this.header(name) ?? "").split(",").map((item) => item.trim().toLowerCase());
    return items.filter((item) => item !== "");
  }

  /** The body as JSON, with all digits of every integer; absent if it is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a service may send anything.
  get json(): any {
    const keepDigits = (_key: string, value: unknown, context: { source: string }) =>
      typeof value === "number" && !Number.isSafeInteger(value) ? raw(context.source) : value;
    try {
      return JSON.parse(this.text, keepDigits as (key: string, value: unknown) => unknown);
    } catch {
      return undefined;
    }
  }

  /** Bytes that came where none may come. */
  get surplus(): string {
    return this.#wire.surplus.toString("utf8");
  }

  /** Headers and body, as they came. */
  get whole(): string {
    const lines = this.#wire.headers.map(([name, value]) => `${name}: ${value}`);
    return [`HTTP/1.1 ${this.status}`, ...lines, "", this.text + this.surplus].join("\n");
  }

  /** The id that `Location` ends in. */
  get locatedId(): bigint | undefined {
    const digits = /\/plants\/(-?\d{1,19})$/.exec(this.header("Location") ?? "")?.[1];
    return digits === undefined ? undefined : BigInt(digits);
  }
}

/** A number that `JSON.stringify` writes with these digits. */
export const raw = (JSON as unknown as { rawJSON(digits: string): object }).rawJSON;

const triesMax = 5;
const retryAfterSecondsMax = 60;

export class Service {
  /** The path that all paths of the service start with. */
  readonly basePath: string;
  readonly host: string;
  readonly #place: Place;
  readonly #timeoutMs: number;
  #signal: AbortSignal;
  /** How long its rate limit has had the check wait. */
  waitedSeconds = 0;

  constructor(address: string, timeoutMs: number, signal: AbortSignal) {
    const url = new URL(address);
    const isSecure = url.protocol === "https:";
    this.basePath = url.pathname.replace(/\/+$/, "");
    this.host = url.host;
    this.#place = {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: Number(url.port || (isSecure ? 443 : 80)),
      isSecure,
    };
    this.#timeoutMs = timeoutMs;
    this.#signal = signal;
  }

  /** From now on this signal stops requests. */
  stopOn(signal: AbortSignal): void {
    this.#signal = signal;
  }

  /**
   * Sends a request such as `GET /plants?limit=1`, and again after 429. Fails with `Unanswered`,
   * and with `Interrupted` after the signal.
   */
  async send(request: string, parts: RequestParts = {}): Promise<ServiceResponse> {
    for (let tries = 1; ; tries++) {
      if (this.#signal.aborted) throw new Interrupted();
      const response = await this.#sendOnce(request, parts);
      const seconds = Number(response.header("Retry-After") ?? "1");
      if (response.status !== 429 || tries === triesMax) return response;
      if (!(seconds <= retryAfterSecondsMax)) return response;
      this.waitedSeconds += seconds;
      await setTimeout(seconds * 1_000, undefined, { signal: this.#signal }).catch(() => {});
    }
  }

  async #sendOnce(request: string, parts: RequestParts): Promise<ServiceResponse> {
    const { headers, body = Buffer.alloc(0), timeoutMs = this.#timeoutMs } = parts;
    const [method = "", target = ""] = request.split(" ");
    const all = { Host: this.host, Connection: "close", ...headers };
    const lines = Object.entries(all).flatMap(([name, values]) =>
      [values].flat().map((value) => `${name}: ${value}`),
    );
    const head = [`${method} ${this.basePath}${target} HTTP/1.1`, ...lines, "", ""];
    const bytes = Buffer.concat([Buffer.from(head.join("\r\n")), body]);
    const sent = head.join("\n") + body.toString("utf8");
    try {
      const isHead = method === "HEAD";
      return new ServiceResponse(sent, await exchange(this.#place, [bytes], { isHead, timeoutMs }));
    } catch (error) {
      throw error instanceof NoAnswer ? new Unanswered(sent, error) : error;
    }
  }
}
