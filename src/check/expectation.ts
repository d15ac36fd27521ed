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

/** What is wrong with a response. `before` is the response to compare with. */
export function* findMismatches(
  response: ServiceResponse,
  expected: Expected,
  before: ServiceResponse | undefined,
): Generator<string, undefined> {
  const { errors, status = errors ? 400 : 200, detail, headers = {}, same = [] } = expected;
  if (![status].flat().includes(response.status)) {
    yield `the status must be ${[status].flat().join(" or ")}, and is ${response.status}`;
  }
  if (response.surplus !== "") yield "a body came where there must be none";
  const code = codes[response.status];
  const mayBeBare = Array.isArray(status) && response.isFromProxy;
  if (code && !mayBeBare && !response.request.startsWith("HEAD ")) {
    const [type, found] = [`urn:plantstore:problem:${code}`, response.json?.type];
    if (found !== type) yield `the type of the problem must be ${type}, and is ${found}`;
  }
  if (detail && !response.json?.detail?.includes(detail)) {
    yield `the detail must include ${detail}, and is ${response.json?.detail}`;
  }
  if (errors) yield* errorMismatches(response.errors, errors);
  for (const [name, value] of Object.entries(headers)) {
    const must = findHeaderMismatch(response, name, value);
    if (must) yield `the header ${name} must ${must}, and is ${response.header(name) ?? "absent"}`;
  }
  if (expected.json !== undefined) {
    const [wanted, found] = [expected.json, response.json].map((json) => JSON.stringify(json));
    if (found !== wanted) yield `the body must be ${wanted}, and is ${found ?? "no JSON"}`;
  }
  if (expected.results) yield* resultMismatches(response.results, expected.results);
  for (const part of before ? same : []) {
    const [wanted, found] = [before, response].map((each) => partOf(each, part));
    if (found !== wanted) yield `${part} must be ${wanted} as before, and is ${found}`;
  }
}

function* errorMismatches(
  found: ServiceResponse["errors"],
  expected: readonly string[],
): Generator<string> {
  const show = (places: readonly string[]) => JSON.stringify([...new Set(places)].sort());
  const named = show(
    found.map(({ pointer, parameter, header }) => String(pointer ?? parameter ?? header)),
  );
  if (named.toLowerCase() !== show(expected).toLowerCase()) {
    yield `errors must name ${show(expected)}, and names ${named}`;
  }
}

function* resultMismatches(
  found: ServiceResponse["results"],
  expected: NonNullable<Expected["results"]>,
): Generator<string> {
  if (found.length !== expected.length) {
    yield `there must be ${expected.length} results, and there are ${found.length}`;
  }
  for (const [index, wanted] of expected.entries()) {
    const result = found[index];
    const name = `result ${index + 1}`;
    if (typeof wanted === "object") {
      const [text, must] = [result, wanted].map((each) => JSON.stringify(each));
      if (text !== must) yield `${name} must be ${must}, and is ${text}`;
      continue;
    }
    if (result?.status !== wanted) {
      yield `the status of ${name} must be ${wanted}, and is ${result?.status}`;
    }
    if (wanted === 201) {
      const id = JSON.stringify(result.id);
      if (!/^-?\d+$/.test(id)) yield `the id of ${name} must be an integer, and is ${id}`;
    } else if (result.code !== codes[wanted] || !result.detail) {
      yield `${name} must have the code ${codes[wanted]} and a detail`;
    }
  }
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
