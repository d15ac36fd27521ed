/** Compares a response with what a row expects of it. */
import type { Expected } from "./row.ts";
import type { ServiceResponse } from "./service.ts";

const codes: Readonly<Record<number, string>> = {
  400: "invalid-request",
  401: "unauthenticated",
  403: "forbidden",
  404: "not-found",
  405: "method-not-allowed",
  409: "conflict",
  410: "gone",
  412: "precondition-failed",
  413: "too-large",
  415: "unsupported-media-type",
  422: "idempotency-mismatch",
};

/** The first thing that is wrong with a response. `before` is the response to compare with. */
export function findMismatch(
  response: ServiceResponse,
  expected: Expected,
  before: ServiceResponse | undefined,
): string | undefined {
  const { errors, status = errors ? 400 : 200, detail, headers = {}, same = [] } = expected;
  if (![status].flat().includes(response.status)) {
    return `the status must be ${[status].flat().join(" or ")}, and is ${response.status}`;
  }
  if (response.surplus !== "") return "a body came where there must be none";
  const code = codes[response.status];
  const mayBeBare = Array.isArray(status) && response.isFromProxy;
  if (code && !mayBeBare && !response.request.startsWith("HEAD ")) {
    const [type, found] = [`urn:plantstore:problem:${code}`, response.json?.type];
    if (found !== type) return `the type of the problem must be ${type}, and is ${found}`;
  }
  if (detail && !response.json?.detail?.includes(detail)) {
    return `the detail must include ${detail}, and is ${response.json?.detail}`;
  }
  if (errors) {
    const [wanted, found] = [errors, response.errors.map(placeOf)].map(showPlaces);
    if (found !== wanted) return `errors must name ${wanted}, and names ${found}`;
  }
  for (const [name, value] of Object.entries(headers)) {
    const must = findHeaderMismatch(response, name, value);
    if (must) return `the header ${name} must ${must}, and is ${response.header(name) ?? "absent"}`;
  }
  if (expected.json !== undefined) {
    const [wanted, found] = [expected.json, response.json].map((json) => JSON.stringify(json));
    if (found !== wanted) return `the body must be ${wanted}, and is ${found ?? "no JSON"}`;
  }
  for (const part of before ? same : []) {
    const [wanted, found] = [before, response].map((each) => partOf(each, part));
    if (found !== wanted) return `${part} must be ${wanted} as before, and is ${found}`;
  }
  return expected.results && findResultMismatch(response.results, expected.results);
}

function placeOf({ pointer, parameter, header }: ServiceResponse["errors"][number]): string {
  return String(pointer ?? parameter ?? header);
}

/** In any order, and each once. The case of a header doesn't matter. */
function showPlaces(places: readonly string[]): string {
  return JSON.stringify([...new Set(places.map((place) => place.toLowerCase()))].sort());
}

function findResultMismatch(
  found: ServiceResponse["results"],
  expected: NonNullable<Expected["results"]>,
): string | undefined {
  if (found.length !== expected.length) {
    return `there must be ${expected.length} results, and there are ${found.length}`;
  }
  for (const [index, wanted] of expected.entries()) {
    const result = found[index];
    const name = `result ${index + 1}`;
    if (typeof wanted === "object") {
      const [text, must] = [result, wanted].map((each) => JSON.stringify(each));
      if (text !== must) return `${name} must be ${must}, and is ${text}`;
    } else if (result.status !== wanted) {
      return `the status of ${name} must be ${wanted}, and is ${result.status}`;
    } else if (wanted === 201) {
      const id = JSON.stringify(result.id);
      if (!/^-?\d+$/.test(id)) return `the id of ${name} must be an integer, and is ${id}`;
    } else if (result.code !== codes[wanted] || !result.detail) {
      return `${name} must have the code ${codes[wanted]} and a detail`;
    }
  }
  return undefined;
}

function partOf(response: ServiceResponse | undefined, part: string): unknown {
  if (part === "body") return response?.text;
  return part === "status" ? response?.status : (response?.header(part) ?? "absent");
}

/** What the header must do, if it doesn't. */
function findHeaderMismatch(
  response: ServiceResponse,
  name: string,
  expected: NonNullable<Expected["headers"]>[string],
): string | undefined {
  const found = response.header(name);
  if (expected === null) return found === undefined ? undefined : "be absent";
  if (typeof expected === "string") return found === expected ? undefined : `be ${expected}`;
  if (expected instanceof RegExp) {
    return expected.test(found ?? "") ? undefined : `match ${expected}`;
  }
  const items = response.items(name);
  const isComplete = [...expected].every((item) => items.includes(item.toLowerCase()));
  const isExact = !(expected instanceof Set) || items.length === expected.size;
  return isComplete && isExact ? undefined : `list ${[...expected].join(", ")}`;
}
