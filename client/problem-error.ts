/** The two ways a call fails: the service refuses it, or doesn't respond. */

/** The service's codes; `unexpected` is a response that isn't a Plant Store's. */
export type ProblemCode =
  | "invalid-request"
  | "unauthenticated"
  | "forbidden"
  | "not-found"
  | "timeout"
  | "method-not-allowed"
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
  | "storage-full"
  | "unexpected";

/** A validation error, and where: in the body, a parameter or a header. */
export interface ValidationError {
  /** A JSON Pointer into the body. */
  readonly pointer?: string | undefined;
  /** The name of a path or query parameter. */
  readonly parameter?: string | undefined;
  /** The name of a header. */
  readonly header?: string | undefined;
  readonly detail: string;
}

interface Problem {
  readonly type: string;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string;
  readonly errors?: readonly ValidationError[];
}

/** The service refused. `message` says what to fix and can be shown. */
export class PlantStoreProblem extends Error {
  override readonly name = "PlantStoreProblem";
  readonly status: number;
  readonly code: ProblemCode;
  readonly title: string;
  readonly detail: string;
  /** Finds the request in the service's log. */
  readonly requestId: string | undefined;
  /** With status 400: every validation error. */
  readonly errors: readonly ValidationError[];
  /** How long the service asked to wait before the next try. */
  readonly retryAfterMs: number | undefined;
  /** Of `create` and `createMany`: a second call with it and the same plants finishes the first. */
  readonly idempotencyKey: string | undefined;
  /** Whether an earlier try may have succeeded although its response was lost. */
  readonly isRepeated: boolean;

  constructor(response: {
    readonly status: number;
    readonly headers: Headers;
    readonly text: string;
    readonly idempotencyKey?: string | undefined;
    readonly isRepeated?: boolean;
    /** How many plants of the same call went out in earlier requests: errors count them, too. */
    readonly plantsBefore?: number;
  }) {
    const { status, headers, text, plantsBefore = 0 } = response;
    const isProblem = headers.get("content-type")?.startsWith("application/problem+json");
    const problem = isProblem ? countFrom(plantsBefore, readProblem(text)) : {};
    super(problem.detail ?? "The response did not come from a Plant Store.");
    this.status = status;
    this.code = (problem.type?.slice(typeStart.length) ?? "unexpected") as ProblemCode;
    this.title = problem.title ?? `Unexpected response ${status}`;
    this.detail = this.message;
    this.requestId = problem.requestId ?? headers.get("x-request-id") ?? undefined;
    this.errors = problem.errors ?? [];
    this.retryAfterMs = readRetryAfter(headers);
    this.idempotencyKey = response.idempotencyKey;
    this.isRepeated = response.isRepeated ?? false;
  }
}

/** Whether the service says for certain that the call changed nothing, in none of its tries. */
export function isRefused(error: unknown): error is PlantStoreProblem {
  if (!(error instanceof PlantStoreProblem) || error.isRepeated) return false;
  return (error.status >= 400 && error.status < 500) || error.code === "storage-full";
}

export function hasCode(error: unknown, code: ProblemCode): error is PlantStoreProblem {
  return error instanceof PlantStoreProblem && error.code === code;
}

/** For people: the first validation errors, with their places in words, or the detail. */
export function describeErrors(
  { errors, detail }: PlantStoreProblem,
  shownMax = Number.POSITIVE_INFINITY,
): string {
  if (errors.length === 0) return detail;
  const shown = errors
    .slice(0, shownMax)
    .map((each) => `${describeLocation(each)} ${each.detail}`.trim().replace(/\.$/, ""));
  const hidden = errors.length - shown.length;
  return `${shown.join("; ")}${hidden > 0 ? ` (and ${hidden} more)` : ""}.`;
}

/** `/1/name` is `Plant 2: name`, `/ids/1` is `Id 2`, and `/set/tag` is `tag`. */
function describeLocation({ pointer, parameter, header = "" }: ValidationError): string {
  if (pointer === undefined) return parameter === "q" ? "search" : (parameter ?? header);
  return pointer
    .replace(/^\/(?:set\/)?/, "")
    .replace(
      /^(ids\/)?(\d+)(\/)?/,
      (_, ids, index, slash) => `${ids ? "Id" : "Plant"} ${Number(index) + 1}${slash ? ":" : ""} `,
    )
    .trim();
}

const typeStart = "urn:plantstore:problem:";

/** Empty if it isn't one of the service's: proxies send problems of their own, too. */
function readProblem(text: string): Partial<Problem> {
  try {
    const problem: Partial<Problem> = JSON.parse(text);
    const { type, detail, errors = [] } = problem;
    const isOurs = type?.startsWith(typeStart) && typeof detail === "string";
    return isOurs && errors.every((each) => typeof each.detail === "string") ? problem : {};
  } catch {
    return {};
  }
}

/** The detail starts with the first error's pointer, without its slash. */
function countFrom(plantsBefore: number, problem: Partial<Problem>): Partial<Problem> {
  const { detail, errors } = problem;
  if (plantsBefore === 0 || !detail || !errors) return problem;
  const shift = (text: string) =>
    text.replace(/^(\/?)(\d+)/, (_, slash, index) => slash + (Number(index) + plantsBefore));
  return {
    ...problem,
    detail: shift(detail),
    errors: errors.map((each) => ({ ...each, pointer: each.pointer && shift(each.pointer) })),
  };
}

/** Seconds or a date (RFC 9110). */
export function readRetryAfter(headers: Headers | undefined): number | undefined {
  const text = headers?.get("retry-after");
  if (!text) return undefined;
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs);
}

/** No complete response came, in any try; the last failure is the `cause`. */
export class PlantStoreUnreachable extends Error {
  override readonly name = "PlantStoreUnreachable";

  constructor(
    address: string,
    readonly tries: number,
    cause: unknown,
    /** As in `PlantStoreProblem`. */
    readonly idempotencyKey?: string | undefined,
  ) {
    super(`No response from ${address} in ${tries} tries: ${describeFailure(cause)}`, { cause });
  }
}

/** Node's `fetch` says only "fetch failed"; the reason is the cause of that. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause, message } = error;
  if (!(cause instanceof Error)) return message;
  // Where a host has several addresses, the cause has a code but no message.
  return `${message}: ${cause.message || (cause as { code?: string }).code}`;
}
