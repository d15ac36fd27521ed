/** The status and title of every error code, and the problem that the caller sees (RFC 9457). */
import { type ErrorCode, PlantStoreError } from "../domain/errors.ts";
import type { Exchange } from "./exchange.ts";
import { noPlantsLeft } from "./headers.ts";
import { acceptedTypes } from "./operation.ts";
import type { Reply } from "./reply.ts";

interface Problem {
  readonly status: number;
  readonly title: string;
  /** What the client does about it: shown in the API reference. docs/interface.md says more. */
  readonly help: string;
}

const row = (status: number, title: string, help: string): Problem => ({ status, title, help });

/** Every error code as clients see it. */
// biome-ignore format: a table.
export const problemInfo: Readonly<Record<ErrorCode, Problem>> = {
  "invalid-request": row(400, "The request is not valid",
    "Fix what `errors` lists. Sending the same request again fails again."),
  unauthenticated: row(401, "A valid token is needed",
    "Send `Authorization: Bearer <token>` with a token that has not expired or been revoked."),
  forbidden: row(403, "The token does not permit this",
    "Use a token with the scope that `WWW-Authenticate` names."),
  "not-found": row(404, "Not found",
    "Check the path and the id. The garden of this token has no such plant."),
  "method-not-allowed": row(405, "The method is not allowed here",
    "Use a method that the header `Allow` lists."),
  timeout: row(408, "The body came too late",
    "Nothing was changed. Send the request again, or a smaller one."),
  conflict: row(409, "The id is not free",
    "Choose another id, or leave it out and the service assigns one."),
  gone: row(410, "Events can't be resumed from there",
    "Read `lastEvent` from `/me`, list the plants again, and go on from that number."),
  "precondition-failed": row(412, "The plant is not as expected",
    "Somebody changed, created or deleted the plant. Read it again, then decide."),
  "too-large": row(413, "The body is too large",
    "Send a shorter body."),
  "unsupported-media-type": row(415, "The type of the body is not supported",
    "Send `application/json` in UTF-8, without a `Content-Encoding`."),
  "expectation-failed": row(417, "The expectation can't be met",
    "Leave out the header `Expect`, or send `100-continue` in lower case."),
  "idempotency-mismatch": row(422, "The idempotency key was used for another request",
    "Use a new key for each new plant, and the same key only to send the same request again."),
  "rate-limited": row(429, "Too many requests",
    "Wait for the seconds in `Retry-After`, then send it again. Too many streams: close one."),
  internal: row(500, "Something went wrong",
    "This is a bug in the service. Report it with the request id."),
  unavailable: row(503, "The service is unavailable",
    "Wait for the seconds in `Retry-After`. Repeat a create with its `Idempotency-Key`."),
  "storage-full": row(507, "There is no room left",
    "Delete plants, or ask the operator for more room. With too many idempotency keys, send no " +
    "key, or wait until some expire. Reading still works."),
};

export function problemType(code: ErrorCode): string {
  return `urn:plantstore:problem:${code}`;
}

const retryAfterSeconds = 1;

/** Notes why the exchange is refused. Anything unexpected is `internal`, which shows no details. */
export function toProblem(exchange: Exchange, error: unknown): Reply {
  const refusal =
    error instanceof PlantStoreError
      ? error
      : new PlantStoreError("internal", problemInfo.internal.help, { cause: error });
  exchange.refusal = refusal;
  return {
    status: problemInfo[refusal.code].status,
    contentType: "application/problem+json",
    headers: problemHeaders(refusal, exchange),
    // A request id needs no escaping.
    body: `${renderProblem(refusal)},"requestId":"${exchange.requestId}"}`,
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
  { token, route, operation, rateLevel, service }: Exchange,
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
      return { Accept: acceptedTypes(operation?.body ?? {}) };
    case "rate-limited": {
      // For too many streams, the rate of requests says nothing.
      const isRate = limit === "requests" && rateLevel !== undefined;
      const allowance = isRate ? service.limiter?.allowance(rateLevel) : undefined;
      return { "Retry-After": String(allowance?.nextSeconds ?? retryAfterSeconds) };
    }
    case "unavailable":
      return { "Retry-After": String(retryAfterSeconds) };
    case "storage-full":
      return limit === "plants" ? { RateLimit: noPlantsLeft } : {};
    default:
      return {};
  }
}
