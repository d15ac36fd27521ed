/**
 * Sends spans to a collector by OTLP over HTTP, in batches, as JSON. What the collector does not
 * take in time is dropped and counted: no request ever waits for a trace.
 */

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** Absent for the first span of a trace. */
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: "server" | "internal";
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly isFailed: boolean;
  readonly attributes: Readonly<Record<string, string | number>>;
}

const flushMs = 1_000;
const batchSpans = 512;
/** About two megabytes. */
const waitingSpansMax = 8_192;
const timeoutMs = 5_000;

interface ExporterOptions {
  /** The collector, such as http://127.0.0.1:4318. */
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
      this.#options.onDrop(spans.length, "too many are waiting");
      return;
    }
    this.#waiting.push(...spans);
    if (this.#waiting.length >= batchSpans) this.#sendSoon();
    else this.#timer ??= setTimeout(() => this.#sendSoon(), flushMs);
  }

  /** Sends what is waiting, in bounded time, whether or not the collector responds. */
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
      // The rest would fail the same way, and a stop must not wait for each batch.
      this.#options.onDrop(batch.length + this.#waiting.length, reason);
      this.#waiting = [];
    }
  }

  /** Returns why it failed; absent if the collector took them. */
  async #send(spans: readonly Span[]): Promise<string | undefined> {
    try {
      const response = await fetch(this.#url, {
        method: "POST",
        headers: { "content-type": "application/json", ...this.#options.headers },
        body: JSON.stringify(this.#render(spans)),
        signal: AbortSignal.timeout(timeoutMs),
        redirect: "error",
      });
      // Read to the end, so that its connection can be used again.
      await response.arrayBuffer();
      return response.ok ? undefined : `the collector responded with ${response.status}`;
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

/** Beyond 2^53, so it is put together from two exact numbers. */
function toNanoseconds(timeMs: number): string {
  const wholeMs = Math.floor(timeMs);
  const restNs = Math.floor((timeMs - wholeMs) * 1e6);
  return `${wholeMs}${String(restNs).padStart(6, "0")}`;
}
