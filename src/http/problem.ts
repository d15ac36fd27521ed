/** Turns an error into the problem that the caller sees (RFC 9457), without internals. */
import { type ErrorCode, PlantStoreError } from "../domain/errors.ts";
import { noPlantsLeft } from "./headers.ts";
import type { Reply } from "./operation.ts";

interface ProblemInfo {
  readonly status: number;
  readonly title: string;
  /** What the client does about it: shown in the API reference. docs/problems.md says more. */
  readonly help: string;
}

export const problems: Readonly<Record<ErrorCode, ProblemInfo>> = {
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
    help: "Use a token with the scope `write`.",
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
  "too-large": {
    status: 413,
    title: "The body is too large",
    help: "Send a shorter body.",
  },
  "unsupported-media-type": {
    status: 415,
    title: "The body is not JSON",
    help: "Send `Content-Type: application/json`, without a `Content-Encoding`.",
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
    title: "The storage is full",
    help: "Delete plants, or ask the operator for more room. Reading still works.",
  },
};

export function problemType(code: ErrorCode): string {
  return `urn:plantstore:problem:${code}`;
}

const retryAfterSeconds = 1;

export interface ProblemContext {
  readonly requestId: string;
  /** Whether the request carried a token. */
  readonly isTokenSent: boolean;
  /** The methods of the path, if it is a known one. */
  readonly allow: string | undefined;
  /** How long until the caller may make one more request; absent without a rate limit. */
  readonly nextSeconds?: number | undefined;
}

/** An error that can be shown: anything unexpected becomes `internal`, without details. */
export function toShown(error: unknown): PlantStoreError {
  if (error instanceof PlantStoreError) return error;
  const message = "This is a bug in the service. Report it with the request id.";
  return new PlantStoreError("internal", message, { cause: error });
}

export function problemReply(error: PlantStoreError, context: ProblemContext): Reply {
  const { status } = problems[error.code];
  return {
    status,
    contentType: "application/problem+json",
    headers: problemHeaders(error, context),
    // A request id needs no escaping.
    body: `${renderProblem(error)},"requestId":"${context.requestId}"}`,
  };
}

/** Frequent errors are the same object each time, so their text is rendered once. */
const rendered = new WeakMap<PlantStoreError, string>();

/** All but the last field, `requestId`. */
function renderProblem(error: PlantStoreError): string {
  let text = rendered.get(error);
  if (text === undefined) {
    const { status, title } = problems[error.code];
    const problem = {
      type: problemType(error.code),
      title,
      status,
      detail: error.message,
      ...(status === 400 && { errors: error.errors }),
    };
    text = JSON.stringify(problem).slice(0, -1);
    rendered.set(error, text);
  }
  return text;
}

const challenge = 'Bearer realm="plants"';
const challengeHeaders = { "WWW-Authenticate": challenge };
const refusedTokenHeaders = { "WWW-Authenticate": `${challenge}, error="invalid_token"` };
const retryHeaders = { "Retry-After": String(retryAfterSeconds) };

function problemHeaders(
  { code, limit }: PlantStoreError,
  context: ProblemContext,
): Record<string, string> {
  switch (code) {
    case "unauthenticated":
      return context.isTokenSent ? refusedTokenHeaders : challengeHeaders;
    case "forbidden":
      return { "WWW-Authenticate": `${challenge}, error="insufficient_scope", scope="write"` };
    case "method-not-allowed":
      return { Allow: context.allow ?? "" };
    case "rate-limited":
      return { "Retry-After": String(context.nextSeconds ?? retryAfterSeconds) };
    case "unavailable":
      return retryHeaders;
    case "storage-full":
      return limit === "plants" ? { RateLimit: noPlantsLeft } : {};
    default:
      return {};
  }
}

/** The last resort, for an error outside the pipeline. */
export function respondToUncaught(error: Error): Response {
  const requestId = crypto.randomUUID();
  const context = { requestId, isTokenSent: false, allow: undefined };
  const { status, contentType, body } = problemReply(toShown(error), context);
  const headers = {
    "Content-Type": contentType ?? "",
    "X-Request-Id": requestId,
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
  };
  return new Response(String(body), { status, headers });
}
