/**
 * What is told of a piece of work: when it began and ended, inside which other, and what it was.
 */

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** Absent if nothing is around it. */
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: "server" | "internal";
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly isFailed: boolean;
  readonly attributes: Readonly<Record<string, string | number>>;
}
