/** The trace of one request: a span for all of it, and inside it one for each stage. */
import type { Span } from "./span-exporter.ts";

/** The context of a trace as it travels between services (W3C Trace Context). */
interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: the caller's span. */
  readonly spanId: string;
  /** Whether the trace is sampled. */
  readonly isSampled: boolean;
}

interface RequestEnd {
  readonly method: string;
  /** The path as documented, without any value of the caller's. */
  readonly route: string | undefined;
  readonly status: number;
  readonly requestId: string;
  readonly garden: string | undefined;
}

type TakeSpans = (spans: readonly Span[]) => void;

/** Begins the trace of a request, from its headers. */
export type BeginTrace = (headers: Headers) => RequestTrace;

/** `ratio`, from 0 to 1, is the share of traces started here that is recorded. */
export function createTracer(ratio: number, take: TakeSpans): BeginTrace {
  return (headers) => {
    const parent = readTraceparent(headers.get("traceparent"));
    return new RequestTrace(parent, parent?.isSampled ?? Math.random() < ratio, take);
  };
}

export class RequestTrace {
  readonly context: TraceContext;
  readonly #parent: TraceContext | undefined;
  readonly #take: TakeSpans;
  /** Read once, so that no span ends before it starts if somebody sets the clock. */
  readonly #originMs = Date.now() - performance.now();
  readonly #startedAtMs = this.#nowMs();
  readonly #stages: { readonly name: string; readonly fromMs: number }[] = [];

  constructor(parent: TraceContext | undefined, isSampled: boolean, take: TakeSpans) {
    this.#parent = parent;
    this.#take = take;
    this.context = { traceId: parent?.traceId ?? makeTraceId(), spanId: makeSpanId(), isSampled };
  }

  /** Ends the stage before it. */
  enter(name: string): void {
    if (this.context.isSampled) this.#stages.push({ name, fromMs: this.#nowMs() });
  }

  end({ method, route, status, requestId, garden }: RequestEnd): void {
    const { traceId, spanId, isSampled } = this.context;
    if (!isSampled) return;
    const endedAtMs = this.#nowMs();
    const whole: Span = {
      traceId,
      spanId,
      parentSpanId: this.#parent?.spanId,
      name: route === undefined ? method : `${method} ${route}`,
      kind: "server",
      startedAtMs: this.#startedAtMs,
      endedAtMs,
      isFailed: status >= 500,
      attributes: {
        "http.request.method": method,
        "http.response.status_code": status,
        "plantstore.request_id": requestId,
        ...(route !== undefined && { "http.route": route }),
        ...(garden !== undefined && { "plantstore.garden": garden }),
        ...(status >= 500 && { "error.type": String(status) }),
      },
    };
    const stages = this.#stages.map(
      ({ name, fromMs }, index): Span => ({
        traceId,
        spanId: makeSpanId(),
        parentSpanId: spanId,
        name,
        kind: "internal",
        startedAtMs: fromMs,
        endedAtMs: this.#stages[index + 1]?.fromMs ?? endedAtMs,
        isFailed: false,
        attributes: {},
      }),
    );
    this.#take([whole, ...stages]);
  }

  /** Stages take less than a millisecond. */
  #nowMs(): number {
    return this.#originMs + performance.now();
  }
}

/** A later version may append more, which we ignore. */
const form =
  /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** Absent if the header is missing or malformed: then a new trace starts. */
export function readTraceparent(header: string | null): TraceContext | undefined {
  const [, version, traceId, spanId, flags = "", more] = form.exec(header ?? "") ?? [];
  if (!traceId || !spanId || (version === "00" && more !== undefined)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

function makeTraceId(): string {
  return crypto.randomUUID().replaceAll("-", "");
}

/** The digits of a UUID that are random, without its version. */
function makeSpanId(): string {
  const uuid = crypto.randomUUID();
  return uuid.slice(-12) + uuid.slice(0, 4);
}
