/**
 * Sends spans to a collector by OTLP over HTTP, in batches, as JSON. What the collector does not
 * take in time is dropped and counted: no request ever waits for a trace.
 */
import type { Span } from "./span.ts";

const flushMs = 1_000;
const batchSpans = 512;
/** Spans that wait, at the most: about two megabytes. */
const waitingSpansMax = 8_192;
const timeoutMs = 5_000;
/** Of an answer, to use its connection again. Beyond it, the connection is closed instead. */
const answerBytesMax = 64 * 1024;

export interface ExporterOptions {
  /** Of the collector, such as http://127.0.0.1:4318. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly version: string;
  readonly onDrop: (spans: number, reason: string) => void;
}

export class SpanExporter {
  readonly #options: ExporterOptions;
  readonly #url: string;
  readonly #resource: object;
  #waiting: Span[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.#url = `${options.endpoint.replace(/\/+$/, "")}/v1/traces`;
    this.#resource = {
      attributes: renderAttributes({
        "service.name": "plantstore",
        "service.version": options.version,
        "service.instance.id": crypto.randomUUID(),
      }),
    };
  }

  add(spans: readonly Span[]): void {
    if (this.#waiting.length + spans.length > waitingSpansMax) {
      this.#options.onDrop(spans.length, "too many wait");
      return;
    }
    this.#waiting.push(...spans);
    if (this.#waiting.length >= batchSpans) this.#sendSoon();
    else this.#timer ??= setTimeout(() => this.#sendSoon(), flushMs);
  }

  /** Sends what waits; within a bounded time, whether or not the collector answers. */
  async flush(): Promise<void> {
    this.#sendSoon();
    await this.#sending;
  }

  #sendSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchSpans);
      const reason = await this.#send(batch);
      if (reason === undefined) continue;
      // What waits behind it would meet the same fate, and a stop must not wait for each.
      this.#options.onDrop(batch.length + this.#waiting.length, reason);
      this.#waiting = [];
    }
  }

  /** Absent if the collector has taken them. */
  async #send(spans: readonly Span[]): Promise<string | undefined> {
    try {
      const response = await fetch(this.#url, {
        method: "POST",
        headers: { "content-type": "application/json", ...this.#options.headers },
        body: JSON.stringify(this.#render(spans)),
        signal: AbortSignal.timeout(timeoutMs),
        redirect: "error",
        // A small answer could become a huge one.
        decompress: false,
      });
      await skim(response);
      return response.ok ? undefined : `the collector answered ${response.status}`;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  #render(spans: readonly Span[]): object {
    const scope = { name: "plantstore", version: this.#options.version };
    const scopeSpans = [{ scope, spans: spans.map(renderSpan) }];
    return { resourceSpans: [{ resource: this.#resource, scopeSpans }] };
  }
}

/**
 * Has the runtime open now what all its requests share, by one that leads nowhere. Where no
 * descriptor is left for that, as when clients hold all of them, it ends the process.
 */
export async function prepareRequests(): Promise<void> {
  await fetch("http://localhost", { unix: "/dev/null/nowhere" }).catch(() => {});
}

/** What it says does not matter, so that no more of it is kept than a piece. */
async function skim(response: Response): Promise<void> {
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > answerBytesMax) return;
  }
}

const kinds = { internal: 1, server: 2 };
const failed = { code: 2 };

function renderSpan(span: Span): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentSpanId !== undefined && { parentSpanId: span.parentSpanId }),
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: toNanoseconds(span.startedAtMs),
    endTimeUnixNano: toNanoseconds(span.endedAtMs),
    attributes: renderAttributes(span.attributes),
    status: span.isFailed ? failed : {},
  };
}

function renderAttributes(attributes: Readonly<Record<string, string | number>>): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value },
  }));
}

/** Beyond 2^53, so put together from two numbers that are exact. */
function toNanoseconds(timeMs: number): string {
  const wholeMs = Math.floor(timeMs);
  const restNs = Math.floor((timeMs - wholeMs) * 1e6);
  return `${wholeMs}${String(restNs).padStart(6, "0")}`;
}
