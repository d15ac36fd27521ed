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

/**
 * One thing that is wrong with what a caller sent, and where: a body field, a parameter, a header.
 */
export type ValidationError = { readonly detail: string } & (
  | { readonly pointer: string }
  | { readonly parameter: string }
  | { readonly header: string }
);

/** What a caller may use so much of and no more, where limits are set. */
export type Limit = "requests" | "plants" | "keys";

/** A failure that the caller can be told about: `message` is safe to show and says what to fix. */
export class PlantStoreError extends Error {
  override readonly name = "PlantStoreError";
  readonly errors: readonly ValidationError[];
  /** The limit that the caller has reached, if that is what it is about. */
  readonly limit: Limit | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: { cause?: unknown; errors?: readonly ValidationError[]; limit?: Limit } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.errors = options.errors ?? [];
    this.limit = options.limit;
  }
}

/** Made once: there can be tens of thousands of it a second, and each must cost next to nothing. */
export const overloaded = new PlantStoreError(
  "unavailable",
  "The service cannot keep up right now. Nothing was changed; try again shortly.",
);
