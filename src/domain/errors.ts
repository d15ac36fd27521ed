/** Expected failures: every code with its status and title, and the one class that carries it. */

interface ErrorInfo {
  /** Of the HTTP response. */
  readonly status: number;
  readonly title: string;
  /** What the client does about it: shown in the API reference. docs/interface.md says more. */
  readonly help: string;
}

export const errorCodes = {
  "invalid-request": {
    status: 400,
    title: "The request is not valid",
    help: "Fix what `errors` lists. Sending the same request again fails again.",
  },
  unauthenticated: {
    status: 401,
    title: "A valid token is needed",
    help: "Send `Authorization: Bearer <token>` with a token that has not expired or been revoked.",
  },
  forbidden: {
    status: 403,
    title: "The token does not permit this",
    help: "Use a token with the scope that `WWW-Authenticate` names.",
  },
  "not-found": {
    status: 404,
    title: "Not found",
    help: "Check the path and the id. The garden of this token has no such plant.",
  },
  "method-not-allowed": {
    status: 405,
    title: "The method is not allowed here",
    help: "Use a method that the header `Allow` lists.",
  },
  conflict: {
    status: 409,
    title: "The id is not free",
    help: "Choose another id, or leave it out and the service assigns one.",
  },
  gone: {
    status: 410,
    title: "The events cannot go on from there",
    help: "Read `lastEvent` from `/me`, list the plants again, and go on from that number.",
  },
  "precondition-failed": {
    status: 412,
    title: "The plant is not as expected",
    help: "Somebody changed, created or deleted the plant. Read it again, then decide.",
  },
  "too-large": {
    status: 413,
    title: "The body is too large",
    help: "Send a shorter body.",
  },
  "unsupported-media-type": {
    status: 415,
    title: "The type of the body is not supported",
    help: "Send `application/json` in UTF-8, without a `Content-Encoding`.",
  },
  "idempotency-mismatch": {
    status: 422,
    title: "The idempotency key was used for another request",
    help: "Use a new key for each new plant, and the same key only to send the same request again.",
  },
  "rate-limited": {
    status: 429,
    title: "Too many requests",
    help: "Wait for the seconds in `Retry-After`, then send the request again.",
  },
  internal: {
    status: 500,
    title: "Something went wrong",
    help: "This is a bug in the service. Report it with the request id.",
  },
  unavailable: {
    status: 503,
    title: "The service is unavailable",
    help: "Wait for the seconds in `Retry-After`. Repeat a create with its `Idempotency-Key`.",
  },
  "storage-full": {
    status: 507,
    title: "There is no room left",
    help:
      "Delete plants, or ask the operator for more room. With too many idempotency keys, send no " +
      "key, or wait until some expire. Reading still works.",
  },
} as const satisfies Record<string, ErrorInfo>;

export type ErrorCode = keyof typeof errorCodes;

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
  /** When to try again, where that is known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: {
      cause?: unknown;
      errors?: readonly ValidationError[];
      limit?: Limit;
      tokenError?: string | undefined;
      retryAfterSeconds?: number;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.errors = options.errors ?? [];
    this.limit = options.limit;
    this.tokenError = options.tokenError;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Ends what a storage says of a write whose outcome is unknown. */
export const sendAgain = "Send it again: a create with the same Idempotency-Key.";

/** Made once: under overload there are tens of thousands a second. */
export const overloaded = new PlantStoreError(
  "unavailable",
  "The service cannot keep up right now. Nothing was changed; try again shortly.",
);

/** One message for all refused tokens. What is wrong with a JWT goes to the log only. */
export function refusedToken(tokenError?: string): PlantStoreError {
  const message = "Send a valid token in the header Authorization: Bearer <token>.";
  return new PlantStoreError("unauthenticated", message, { tokenError });
}

/** Characters that move the cursor, hide or reverse text. Emoji and some scripts need joiners. */
const unsafe = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** One line from elsewhere, with unsafe characters escaped as JSON does it. */
export function showSafely(text: string): string {
  return text.replace(unsafe, (character) =>
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

/** A request with more is refused for these; finding them all could take milliseconds. */
export const errorsMax = 100;

export function refuse(first: ValidationError, all = [first]): PlantStoreError {
  const message = summarize(first, all.length);
  return new PlantStoreError("invalid-request", message, { errors: all.slice(0, errorsMax) });
}

/** The first error, and how many more there are. */
export function summarize(first: ValidationError, count: number): string {
  const more = count > 1 ? ` (and ${count - 1} more; see errors).` : ".";
  return showSafely(describe(first)).replace(/\.$/, more);
}

function describe(error: ValidationError): string {
  if ("parameter" in error) return `${error.parameter} ${error.detail}`;
  if ("header" in error) return `${error.header} ${error.detail}`;
  if (error.pointer === "") return error.detail;
  return `${error.pointer.slice(1) || '""'} ${error.detail}`;
}
