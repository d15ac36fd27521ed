/** Turns an error into the problem that the caller sees (RFC 9457), without internals. */
import type { Scope } from "../domain/caller.ts";
import { type ErrorCode, errorCodes, PlantStoreError } from "../domain/errors.ts";
import { noPlantsLeft } from "./headers.ts";
import type { Reply } from "./operation.ts";

export function problemType(code: ErrorCode): string {
  return `urn:plantstore:problem:${code}`;
}

const defaultRetryAfterSeconds = 1;

export interface ProblemContext {
  readonly requestId: string;
  /** Whether the request carried a token. */
  readonly isTokenSent: boolean;
  /** The methods of the path, if it is a known one. */
  readonly allow: string | undefined;
  /** The scope that the operation needs. */
  readonly scope: Scope | undefined;
  /** How long until the caller may make one more request; absent without a rate limit. */
  readonly nextSeconds?: number | undefined;
}

/** Anything unexpected becomes `internal`, which shows no details. */
export function toPlantStoreError(error: unknown): PlantStoreError {
  if (error instanceof PlantStoreError) return error;
  const message = "This is a bug in the service. Report it with the request id.";
  return new PlantStoreError("internal", message, { cause: error });
}

export function problemReply(error: PlantStoreError, context: ProblemContext): Reply {
  const { status } = errorCodes[error.code];
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
    const { status, title } = errorCodes[error.code];
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
  { code, limit, retryAfterSeconds = defaultRetryAfterSeconds }: PlantStoreError,
  context: ProblemContext,
): Record<string, string> {
  switch (code) {
    case "unauthenticated":
      return context.isTokenSent ? refusedTokenHeaders : challengeHeaders;
    case "forbidden":
      return {
        "WWW-Authenticate": `${challenge}, error="insufficient_scope", scope="${context.scope}"`,
      };
    case "method-not-allowed":
      return { Allow: context.allow ?? "" };
    case "rate-limited":
      return { "Retry-After": String(context.nextSeconds ?? retryAfterSeconds) };
    case "unavailable":
      return { "Retry-After": String(retryAfterSeconds) };
    case "storage-full":
      return limit === "plants" ? { RateLimit: noPlantsLeft } : {};
    default:
      return {};
  }
}
