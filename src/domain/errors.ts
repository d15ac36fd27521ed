/** Expected failures: their codes, the class that carries them, and the messages they share. */
import { showSafely } from "../shared/text.ts";

export type ErrorCode =
  | "invalid-request"
  | "unauthenticated"
  | "forbidden"
  | "not-found"
  | "method-not-allowed"
  | "timeout"
  | "conflict"
  | "gone"
  | "precondition-failed"
  | "too-large"
  | "unsupported-media-type"
  | "expectation-failed"
  | "idempotency-mismatch"
  | "rate-limited"
  | "internal"
  | "unavailable"
  | "storage-full";

/** One thing that is wrong with a request, and where: a body field, a parameter, a header. */
export type ValidationError = { readonly detail: string } & (
  | { readonly pointer: string }
  | { readonly parameter: string }
  | { readonly header: string }
);

/** What a caller may have too many of. */
export type Limit = "requests" | "streams" | "plants" | "keys";

/** `message` is safe to show to the caller and says what to do. */
export class PlantStoreError extends Error {
  override readonly name = "PlantStoreError";
  readonly errors: readonly ValidationError[];
  /** The limit that the caller has reached, if any. */
  readonly limit: Limit | undefined;
  /** What is wrong with the token, such as `aud`. For the log: callers never see it. */
  readonly tokenError: string | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: {
      cause?: unknown;
      errors?: readonly ValidationError[];
      limit?: Limit;
      tokenError?: string | undefined;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.errors = options.errors ?? [];
    this.limit = options.limit;
    this.tokenError = options.tokenError;
  }
}

/** The advice in every message about an unknown outcome. */
export const sendAgain = "Send it again. For a create, use the same Idempotency-Key.";

/** One message for all refused tokens. What is wrong with a JWT goes to the log only. */
export function refusedToken(tokenError?: string): PlantStoreError {
  const message = "Send a valid token in the header Authorization: Bearer <token>.";
  return new PlantStoreError("unauthenticated", message, { tokenError });
}

/** More errors aren't reported: finding them all could take milliseconds. */
export const errorsMax = 100;

export function refuse(first: ValidationError, all = [first]): PlantStoreError {
  const errors = all.slice(0, errorsMax);
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more; see errors).` : ".";
  const message = showSafely(describe(first)).replace(/\.$/, more);
  return new PlantStoreError("invalid-request", message, { errors });
}

function describe(error: ValidationError): string {
  if ("parameter" in error) return `${error.parameter} ${error.detail}`;
  if ("header" in error) return `${error.header} ${error.detail}`;
  if (error.pointer === "") return error.detail;
  return `${error.pointer.slice(1) || '""'} ${error.detail}`;
}
