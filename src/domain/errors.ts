/** The one error class of expected failures. It knows their codes, not how HTTP shows them. */

export type ErrorCode =
  | "invalid-request"
  | "unauthenticated"
  | "forbidden"
  | "not-found"
  | "method-not-allowed"
  | "conflict"
  | "too-large"
  | "unsupported-media-type"
  | "idempotency-mismatch"
  | "rate-limited"
  | "internal"
  | "unavailable"
  | "storage-full";

/** One thing that is wrong with what a caller sent, and where: a body field, a parameter, a header. */
export type Fault = { readonly detail: string } & (
  | { readonly pointer: string }
  | { readonly parameter: string }
  | { readonly header: string }
);

/** A failure that the caller can be told about: `message` is safe to show and says what to fix. */
export class PlantStoreError extends Error {
  override readonly name = "PlantStoreError";
  readonly faults: readonly Fault[];

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: { cause?: unknown; faults?: readonly Fault[] } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.faults = options.faults ?? [];
  }
}
