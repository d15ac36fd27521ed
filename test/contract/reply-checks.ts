/** A response as tests read it, and checks of what all responses promise. */
import { expect } from "bun:test";
import { problemInfo } from "../../src/http/problem.ts";

/** For `JSON.parse`: reads an integer that no double can hold as a bigint. */
const keepDigits = (_key: string, value: unknown, { source }: { source: string }) =>
  typeof value === "number" && !Number.isSafeInteger(value) ? BigInt(source) : value;

/** A response that was read to its end. */
export class Reply {
  readonly status: number;
  readonly headers: Headers;

  constructor(
    response: Response,
    readonly text: string,
    private readonly basePath: string,
  ) {
    this.status = response.status;
    this.headers = response.headers;
  }

  /** The body; an integer that no double can hold is a bigint. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at it as the JSON that it is.
  get json(): any {
    return JSON.parse(this.text, keepDigits as (key: string, value: unknown) => unknown);
  }

  /**
   * Where the errors of a 400 are: each pointer, parameter or header once, sorted. The pointer of
   * an error about the body as a whole is empty.
   */
  get errors(): string[] {
    const errors: Record<string, string>[] = this.json.errors;
    const places = errors.map((error) => error.pointer ?? error.parameter ?? error.header ?? "?");
    return [...new Set(places)].toSorted();
  }

  /** The target of `Link`, without the base path; undefined at the end of a list. */
  get next(): string | undefined {
    const link = this.headers.get("Link");
    if (link === null) return undefined;
    expect(link).toMatch(new RegExp(`^<${this.basePath}/[^>]*>; rel="next"$`));
    return link.slice(1 + this.basePath.length, link.indexOf(">"));
  }
}

const problemCodes = new Map(
  Object.entries(problemInfo).map(([code, { status }]) => [status, code] as const),
);

/** Needs no token. Paths are those below the base path. */
const isOpenPath = (path: string): boolean =>
  /^(\/(docs|openapi\.json|favicon\.ico|healthz|readyz|metrics|assets\/.+)?)?$/.test(path);

const isProbe = (path: string): boolean => /^\/(healthz|readyz|metrics)$/.test(path);

const exposedHeaders =
  "Location, Link, X-Request-Id, ETag, Idempotency-Replayed, Retry-After, RateLimit, " +
  "RateLimit-Policy, WWW-Authenticate";

export function checkCommonHeaders({ headers }: Reply): void {
  expect(headers.get("X-Request-Id")).toMatch(/^[\w.-]{1,128}$/);
  expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
  expect(headers.has("Set-Cookie")).toBe(false);
  expect(headers.has("Access-Control-Allow-Credentials")).toBe(false);
}

/** Any page may read any response, unless the origins are configured; probes are for no page. */
export function checkCors(path: string, { headers }: Reply): void {
  const origin = headers.get("Access-Control-Allow-Origin");
  const exposed = headers.get("Access-Control-Expose-Headers");
  expect(origin).toBe(isProbe(path) ? null : "*");
  expect(exposed).toBe(isProbe(path) ? null : exposedHeaders);
}

export function checkCaching(path: string, { status, headers }: Reply): void {
  if (isOpenPath(path) && status !== 404) return;
  // A proxy that compressed a response with an ETag would weaken the ETag.
  const expected = headers.has("ETag") ? "no-store, no-transform" : "no-store";
  expect(headers.get("Cache-Control")).toBe(expected);
}

export function checkProblem({ status, headers, json }: Reply): void {
  expect(headers.get("Content-Type")).toBe("application/problem+json");
  expect(json).toMatchObject({
    type: `urn:plantstore:problem:${problemCodes.get(status)}`,
    title: expect.any(String),
    status,
    detail: expect.any(String),
    requestId: headers.get("X-Request-Id"),
  });
  expect("errors" in json).toBe(status === 400);
}
