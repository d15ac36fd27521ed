/** The two ways a call fails: the service refuses it, or no response comes. */
import type { Problem } from "./wire-types.ts";

type CodeOf<Type> = Type extends `urn:plantstore:problem:${infer Code}` ? Code : never;

/** The service's codes; `unexpected` is a response that isn't a Plant Store's. */
export type ProblemCode = CodeOf<Problem["type"]> | "unexpected";

/** A validation error, and where: in the body, a parameter or a header. */
export type Fault = NonNullable<Problem["errors"]>[number];

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
  readonly errors: readonly Fault[];
  /** How long the service asked to wait before the next try. */
  readonly retryAfterMs: number | undefined;

  constructor(
    status: number,
    problem: Partial<Problem>,
    more: { requestId?: string | undefined; retryAfterMs?: number | undefined } = {},
  ) {
    const detail = problem.detail ?? "The response did not come from a Plant Store.";
    super(detail);
    this.status = status;
    this.code = (problem.type?.split(":").at(-1) ?? "unexpected") as ProblemCode;
    this.title = problem.title ?? `Unexpected response ${status}`;
    this.detail = detail;
    this.requestId = problem.requestId ?? more.requestId;
    this.errors = problem.errors ?? [];
    this.retryAfterMs = more.retryAfterMs;
  }
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
