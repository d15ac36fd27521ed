/** The context of a trace as it travels between services (W3C Trace Context). */

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: the span of whoever calls. */
  readonly spanId: string;
  /** Whether whoever began the trace wants it recorded. */
  readonly isSampled: boolean;
}

/** A later version may append more, which says nothing to us. */
const form =
  /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** Absent if the header is, or makes no sense: then a new trace begins. */
export function readTraceparent(header: string | null): TraceContext | undefined {
  const [, version, traceId, spanId, flags = "", more] = form.exec(header ?? "") ?? [];
  if (!traceId || !spanId || (version === "00" && more !== undefined)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function writeTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

export function makeTraceId(): string {
  return crypto.randomUUID().replaceAll("-", "");
}

/** Of the random digits of a UUID, the last that hold no version. */
export function makeSpanId(): string {
  const uuid = crypto.randomUUID();
  return uuid.slice(-12) + uuid.slice(0, 4);
}
