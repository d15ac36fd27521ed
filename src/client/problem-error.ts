/** The two ways a call fails: the service refuses it, or no response comes. */
import type { Problem } from "./wire-types.ts";

type CodeOf<Type> = Type extends `urn:plantstore:problem:${infer Code}` ? Code : never;

/** The service's codes; `unexpected` is a response that isn't a Plant Store's. */
export type ProblemCode = CodeOf<Problem["type"]> | "unexpected";

/** A validation error, and where: in the body, a parameter or a header. */
export type ValidationError = NonNullable<Problem["errors"]>[number];

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

  constructor({ status, headers, text }: { status: number; headers: Headers; text: string }) {
    const isProblem = headers.get("content-type")?.startsWith("application/problem+json");
    const problem = isProblem ? readProblem(text) : {};
    super(problem.detail ?? "The response did not come from a Plant Store.");
    this.status = status;
    this.code = (problem.type?.slice(typeStart.length) ?? "unexpected") as ProblemCode;
    this.title = problem.title ?? `Unexpected response ${status}`;
    this.detail = this.message;
    this.requestId = problem.requestId ?? headers.get("x-request-id") ?? undefined;
    this.errors = problem.errors ?? [];
    this.retryAfterMs = readRetryAfter(headers);
  }
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

/** Seconds or a date (RFC 9110). */
export function readRetryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  if (text === null) return undefined;
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
  ) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`No response from ${address} in ${tries} tries: ${reason}`, { cause });
  }
}
