/** Compares a response with what a row expects of it. */

import type { ServiceResponse } from "./checked-service.ts";
import type { Expected } from "./row.ts";

const codes: Readonly<Record<number, string>> = {
  400: "invalid-request",
  401: "unauthenticated",
  403: "forbidden",
  404: "not-found",
  405: "method-not-allowed",
  409: "conflict",
  413: "too-large",
  415: "unsupported-media-type",
  422: "idempotency-mismatch",
};

/** What is wrong, in words; absent if nothing is. `before` is the response to compare with. */
export function findFault(
  response: ServiceResponse,
  expected: Expected,
  before: ServiceResponse | undefined,
): string | undefined {
  return (
    findWrongStatus(response, expected) ??
    findWrongErrors(response, expected) ??
    Object.entries(expected.headers ?? {})
      .map(([name, value]) => findWrongHeader(response, name, value))
      .find((fault) => fault !== undefined) ??
    findWrongJson(response, expected) ??
    (expected.same ?? [])
      .map((part) => before && findDifference(response, before, part))
      .find((fault) => fault !== undefined)
  );
}

function findWrongStatus(response: ServiceResponse, expected: Expected): string | undefined {
  const { status = expected.errors ? 400 : 200 } = expected;
  const statuses = [status].flat();
  if (!statuses.includes(response.status)) {
    return `the status must be ${statuses.join(" or ")}, and is ${response.status}`;
  }
  if (response.surplus !== "") return "a body came where there must be none";
  const code = codes[response.status];
  const hasBody = !response.request.startsWith("HEAD ");
  if (typeof status !== "number" || code === undefined || !hasBody) return undefined;
  const [type, found] = [`urn:plantstore:problem:${code}`, response.json?.type];
  return found === type ? undefined : `the type of the problem must be ${type}, and is ${found}`;
}

interface FoundError {
  readonly pointer?: unknown;
  readonly parameter?: unknown;
  readonly header?: unknown;
  readonly detail?: unknown;
}

/** The validation errors of a problem; none if they are not in the right form. */
export function errorsOf(response: ServiceResponse): readonly FoundError[] {
  const errors: unknown = response.json?.errors;
  return Array.isArray(errors) ? errors.filter((error) => error && typeof error === "object") : [];
}

function findWrongErrors(response: ServiceResponse, { errors }: Expected): string | undefined {
  if (errors === undefined) return undefined;
  const show = (places: readonly string[]) => JSON.stringify([...new Set(places)].sort());
  const found = errorsOf(response).map(({ pointer, parameter, header }) =>
    String(pointer ?? parameter ?? header),
  );
  if (show(found).toLowerCase() === show(errors).toLowerCase()) return undefined;
  return `errors must name ${show(errors)}, and names ${show(found)}`;
}

function findWrongHeader(
  response: ServiceResponse,
  name: string,
  expected: NonNullable<Expected["headers"]>[string],
): string | undefined {
  const found = response.header(name);
  const must = (what: string) => `the header ${name} must ${what}, and is ${found ?? "absent"}`;
  if (expected === null) return found === undefined ? undefined : must("be absent");
  if (typeof expected === "string") return found === expected ? undefined : must(`be ${expected}`);
  if (expected instanceof RegExp) {
    return expected.test(found ?? "") ? undefined : must(`match ${expected}`);
  }
  const items = response.items(name);
  const wanted = [...expected].map((item) => item.toLowerCase());
  const isComplete = wanted.every((item) => items.includes(item));
  const isExact = !(expected instanceof Set) || items.length === wanted.length;
  return isComplete && isExact ? undefined : must(`list ${[...expected].join(", ")}`);
}

function findWrongJson(response: ServiceResponse, expected: Expected): string | undefined {
  if (expected.json === undefined) return undefined;
  const [wanted, found] = [expected.json, response.json].map((json) => JSON.stringify(json));
  return found === wanted ? undefined : `the body must be ${wanted}, and is ${found ?? "no JSON"}`;
}

function findDifference(
  response: ServiceResponse,
  before: ServiceResponse,
  part: string,
): string | undefined {
  const [wanted, found] = [before, response].map((each) => {
    if (part === "body") return each.text;
    return part === "status" ? each.status : (each.header(part) ?? "absent");
  });
  return found === wanted ? undefined : `${part} must be ${wanted} as before, and is ${found}`;
}
