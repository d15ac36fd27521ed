/** The trace of one request: a span for all of it, and inside it one for each stage of its way. */
import type { Span } from "./span.ts";
import {
  makeSpanId,
  makeTraceId,
  readTraceparent,
  type TraceContext,
  writeTraceparent,
} from "./trace-context.ts";

export interface RequestEnd {
  readonly method: string;
  /** The path as it is documented, with no value of a caller's in it. */
  readonly route: string | undefined;
  readonly status: number;
  readonly requestId: string;
  readonly garden: string | undefined;
}

export interface TracerOptions {
  /** Which part of the traces that begin here is recorded: 0 to 1. */
  readonly ratio: number;
  readonly take: (spans: readonly Span[]) => void;
}

/** Begins the trace of each request. */
export class Tracer {
  readonly #options: TracerOptions;

  constructor(options: TracerOptions) {
    this.#options = options;
  }

  begin(headers: Headers): RequestTrace {
    const parent = readTraceparent(headers.get("traceparent"));
    const isSampled = parent?.isSampled ?? Math.random() < this.#options.ratio;
    return new RequestTrace(parent, isSampled, this.#options.take);
  }
}

export class RequestTrace {
  readonly context: TraceContext;
  readonly #parent: TraceContext | undefined;
  readonly #take: TracerOptions["take"];
  /** The same to its end, so that no span ends before it begins. */
  readonly #originMs = findOrigin();
  readonly #startedAtMs = this.#nowMs();
  readonly #stages: { readonly name: string; readonly fromMs: number }[] = [];

  constructor(parent: TraceContext | undefined, isSampled: boolean, take: TracerOptions["take"]) {
    this.#parent = parent;
    this.#take = take;
    this.context = { traceId: parent?.traceId ?? makeTraceId(), spanId: makeSpanId(), isSampled };
  }

  /** What services that are called for this request are told. */
  get traceparent(): string {
    return writeTraceparent(this.context);
  }

  /** The stage before it ends here. */
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

  /** Finer than milliseconds, which a stage seldom takes. */
  #nowMs(): number {
    return this.#originMs + performance.now();
  }
}

/** Further apart than two looks at two clocks. */
const setMs = 1_000;

/**
 * Where `performance.now` began, by the clock of the system as it is: that may have been set since,
 * as shortly after a machine has started, and it goes on while a machine sleeps.
 */
function findOrigin(): number {
  const originMs = Date.now() - performance.now();
  const isSet = Math.abs(originMs - performance.timeOrigin) > setMs;
  return isSet ? originMs : performance.timeOrigin;
}
