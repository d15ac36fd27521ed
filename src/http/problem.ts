/** The status and title of every error code, and the problem that the caller sees (RFC 9457). */
import { type ErrorCode, PlantStoreError } from "../domain/errors.ts";
import { noPlantsLeft } from "./headers.ts";
import type { IncomingRequest } from "./incoming.ts";
import type { Reply } from "./operation.ts";

interface Problem {
  readonly status: number;
  readonly title: string;
  /** What the client does about it: shown in the API reference. docs/interface.md says more. */
  readonly help: string;
}

/** Every error code as clients see it. */
export const problemInfo: Readonly<Record<ErrorCode, Problem>> = {
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
  timeout: {
    status: 408,
    title: "The body came too late",
    help: "Nothing was changed. Send the request again, or a smaller one.",
  },
  conflict: {
    status: 409,
    title: "The id is not free",
    help: "Choose another id, or leave it out and the service assigns one.",
  },
  gone: {
    status: 410,
    title: "Events can't be resumed from there",
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
    help: "Wait for the seconds in `Retry-After`, then send it again. Too many streams: close one.",
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
};

export function problemType(code: ErrorCode): string {
  return `urn:plantstore:problem:${code}`;
}

const retryAfterSeconds = 1;

/** Anything unexpected becomes `internal`, which shows no details. */
export function toPlantStoreError(error: unknown): PlantStoreError {
  if (error instanceof PlantStoreError) return error;
  const message = "This is a bug in the service. Report it with the request id.";
  return new PlantStoreError("internal", message, { cause: error });
}

/** `nextSeconds`: until the caller may make one more request; absent without a rate limit. */
export function problemReply(
  error: PlantStoreError,
  incoming: IncomingRequest,
  nextSeconds: number | undefined,
): Reply {
  return {
    status: problemInfo[error.code].status,
    contentType: "application/problem+json",
    headers: problemHeaders(error, incoming, nextSeconds),
    // A request id needs no escaping.
    body: `${renderProblem(error)},"requestId":"${incoming.requestId}"}`,
  };
}

/** Frequent errors are the same object each time, so their text is rendered once. */
const rendered = new WeakMap<PlantStoreError, string>();

/** All but the last field, `requestId`. */
function renderProblem(error: PlantStoreError): string {
  let text = rendered.get(error);
  if (text === undefined) {
    const { status, title } = problemInfo[error.code];
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

function problemHeaders(
  { code, limit }: PlantStoreError,
  { token, route, operation }: IncomingRequest,
  nextSeconds = retryAfterSeconds,
): Record<string, string> {
  switch (code) {
    case "unauthenticated":
      return token === undefined ? challengeHeaders : refusedTokenHeaders;
    case "forbidden":
      return {
        "WWW-Authenticate": `${challenge}, error="insufficient_scope", scope="${operation?.scope}"`,
      };
    case "method-not-allowed":
      return { Allow: route?.allow ?? "" };
    case "unsupported-media-type":
      return {
        Accept: ["application/json", operation?.body?.otherType].filter(Boolean).join(", "),
      };
    case "rate-limited":
      return { "Retry-After": String(nextSeconds) };
    case "unavailable":
      return { "Retry-After": String(retryAfterSeconds) };
    case "storage-full":
      return limit === "plants" ? { RateLimit: noPlantsLeft } : {};
    default:
      return {};
  }
}
