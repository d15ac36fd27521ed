/**
 * The way to the service under check: writes requests out, with a token or without, and waits for
 * answers.
 */
import { Answer } from "./answer.ts";
import { exchange, NoAnswer, type Place } from "./wire.ts";

/** A header may be given several times, or, by an empty list, left out. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface RequestParts {
  readonly token?: string | undefined;
  readonly headers?: RequestHeaders;
  /** An object is sent as JSON, text and bytes as they are. */
  readonly body?: object | string | Buffer | undefined;
  /** Waits longer than usual. */
  readonly timeoutMs?: number;
}

/** The check was told to stop. */
export class Interrupted extends Error {}

/** A request that nothing came back to. */
export class Unanswered extends Error {
  readonly request: string;
  readonly code: string | undefined;

  constructor(request: string, cause: NoAnswer) {
    super(cause.message, { cause });
    this.request = request;
    this.code = cause.code;
  }
}

const limitedTriesMax = 5;
const retryAfterSecondsMax = 60;
const shownCharactersMax = 600;

export class Line {
  /** The path that all paths of the service start with. */
  readonly basePath: string;
  readonly authority: string;
  readonly #place: Place;
  readonly #timeoutMs: number;
  #signal: AbortSignal;
  /** How long the service had it wait, because it limits the rate. */
  waitedSeconds = 0;

  constructor(address: string, timeoutMs: number, signal: AbortSignal) {
    const url = new URL(address);
    const isSecure = url.protocol === "https:";
    this.basePath = url.pathname.replace(/\/+$/, "");
    this.authority = url.host;
    this.#place = {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: Number(url.port || (isSecure ? 443 : 80)),
      isSecure,
    };
    this.#timeoutMs = timeoutMs;
    this.#signal = signal;
  }

  /** From now on nothing is sent once this signal is given. */
  stopOn(signal: AbortSignal): void {
    this.#signal = signal;
  }

  /**
   * Sends a request such as `GET /plants?limit=1`. Where the service limits the rate, it waits and
   * tries again. Fails with `Unanswered`, and with `Interrupted` once the check was told to stop.
   */
  async send(request: string, parts: RequestParts = {}): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      if (this.#signal.aborted) throw new Interrupted();
      const answer = await this.#sendOnce(request, parts);
      const seconds = Number(answer.header("retry-after") ?? "1");
      if (answer.status !== 429 || tries === limitedTriesMax) return answer;
      if (!(seconds <= retryAfterSecondsMax)) return answer;
      this.waitedSeconds += seconds;
      await rest(seconds * 1_000, this.#signal);
    }
  }

  async #sendOnce(request: string, parts: RequestParts): Promise<Answer> {
    const [method = "", target = ""] = request.split(" ");
    const body = renderBody(parts.body);
    const head = [
      `${method} ${this.basePath}${target} HTTP/1.1`,
      ...renderHeaders({ ...this.#usualHeaders(parts, body), ...parts.headers }),
    ];
    const bytes = Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
    const shown = `${head.join("\n")}\n\n${body.toString("utf8")}`;
    try {
      const timeoutMs = parts.timeoutMs ?? this.#timeoutMs;
      const wire = await exchange(this.#place, [bytes], { isHead: method === "HEAD", timeoutMs });
      return new Answer(shown, wire);
    } catch (error) {
      throw error instanceof NoAnswer ? new Unanswered(shown, error) : error;
    }
  }

  #usualHeaders({ token, body }: RequestParts, { length }: Buffer): RequestHeaders {
    return {
      Host: this.authority,
      Connection: "close",
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && {
        "Content-Type": "application/json",
        "Content-Length": String(length),
      }),
    };
  }
}

/** Ends early once the signal is given. */
async function rest(durationMs: number, signal: AbortSignal): Promise<void> {
  // While the answer was on its way: it is not given again.
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(end, durationMs);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    }
    signal.addEventListener("abort", end);
  });
}

function renderHeaders(headers: RequestHeaders): string[] {
  return Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  );
}

function renderBody(body: RequestParts["body"]): Buffer {
  if (body === undefined) return Buffer.alloc(0);
  if (body instanceof Buffer) return Buffer.from(body);
  if (typeof body === "string") return Buffer.from(body);
  return Buffer.from(renderJson(body));
}

/** A bigint is written as a number with all its digits. */
function renderJson(value: object): string {
  const members = Object.entries(value).map(
    ([key, part]) =>
      `${JSON.stringify(key)}:${typeof part === "bigint" ? part : JSON.stringify(part)}`,
  );
  return `{${members.join(",")}}`;
}

export function abbreviate(text: string): string {
  if (text.length <= shownCharactersMax) return text;
  return `${text.slice(0, shownCharactersMax)}… (${text.length} characters)`;
}
