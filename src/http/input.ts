/** Turns a request into valid input, or refuses it with every validation error. */
import * as v from "valibot";
import { errorsMax, PlantStoreError, refuse, type ValidationError } from "../domain/errors.ts";
import type { ContentHashes } from "../domain/plant.ts";
import { readBody } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import type { Input, Operation, RequestBody } from "./operation.ts";
import { ifMatch, type Parameter, type Parameters } from "./parameters.ts";
import { type Checked, oneErrorEach } from "./validation.ts";

/** The input of a request without a body. Fails with `invalid-request`. */
export function readInput(operation: Operation, exchange: Exchange): Input {
  return toInput(operation, exchange, readParameters(operation, exchange), noBody);
}

/** Fails with `invalid-request`, `precondition-failed`, or what refuses the body as a whole. */
export async function readInputWithBody(operation: Operation, exchange: Exchange): Promise<Input> {
  const { body: expected } = operation;
  if (expected) exchange.declaredBody.check(expected);
  const parameters = readParameters(operation, exchange);
  const body = expected
    ? await parseBody(expected, exchange, parameters.value.id)
    : await checkNoBody(exchange);
  return toInput(operation, exchange, parameters, body);
}

function toInput(
  operation: Operation,
  { request }: Exchange,
  parameters: Checked<Record<string, unknown>>,
  body: Checked<unknown>,
): Input {
  const headerErrors = checkHeaders(operation, request.headers);
  const condition = readCondition(operation, request.headers);
  const errors = [...parameters.errors, ...headerErrors, ...condition.errors, ...body.errors];
  const [first] = errors;
  if (first) throw refuse(first, errors);
  if (condition.value !== undefined && condition.value !== "*") throw noEntityTag;
  return { parameters: parameters.value, body: body.value };
}

async function parseBody(
  body: RequestBody,
  exchange: Exchange,
  pathId: unknown,
): Promise<Checked<unknown>> {
  let text: string;
  try {
    text = await readBody(exchange, body.bytesMax);
  } catch (error) {
    if (!(error instanceof PlantStoreError) || error.code !== "invalid-request") throw error;
    return { value: undefined, errors: error.errors };
  }
  // Thousands of bodies can arrive in the same tick. What has been read isn't refused any more.
  if (!exchange.service.scheduler.mayRun()) await exchange.turn();
  return body.parse(text, exchange, pathId);
}

const noBody: Checked<undefined> = { value: undefined, errors: [] };

/**
 * Where no body is expected, one in chunks may turn out empty. The runtime passes over those of GET
 * and HEAD.
 */
async function checkNoBody(exchange: Exchange): Promise<Checked<undefined>> {
  const { declaredBody, operation } = exchange;
  if (declaredBody.isChunked) {
    if (operation?.method === "GET" || (await isEmpty(exchange))) return noBody;
  }
  return { value: undefined, errors: [{ pointer: "", detail: "This operation takes no body." }] };
}

async function isEmpty(exchange: Exchange): Promise<boolean> {
  try {
    await readBody(exchange, 0);
    return true;
  } catch (error) {
    if (error instanceof PlantStoreError && error.code === "too-large") return false;
    throw error;
  }
}

function checkHeaders({ refusedHeaders = [] }: Operation, sent: Headers): ValidationError[] {
  const refused = refusedHeaders.filter((header) => sent.has(header));
  return refused.map((header) => ({ header, detail: "must not be sent here." }));
}

const noCondition: Checked<ContentHashes | undefined> = { value: undefined, errors: [] };

/** `If-Match` of a POST. What it writes to has no entity tag, so none can match. */
function readCondition({ method }: Operation, sent: Headers): Checked<ContentHashes | undefined> {
  const text = method === "POST" ? sent.get("if-match") : null;
  if (text === null) return noCondition;
  const parsed = v.safeParse(ifMatch.schema, text, oneErrorEach);
  if (parsed.success) return { value: parsed.output, errors: [] };
  const detail = `${parsed.issues[0].message}.`;
  return { value: undefined, errors: [{ header: "If-Match", detail }] };
}

const noEntityTag = new PlantStoreError(
  "precondition-failed",
  "There is no entity tag here, so If-Match can't be met. Nothing was changed; leave it out.",
);

function readParameters(
  { parameters = {} }: Operation,
  { request, query, variable }: Exchange,
): Checked<Record<string, unknown>> {
  const { value: texts, errors: queryErrors } = readQuery(parameters, query);
  const errors = [...queryErrors];
  const textOf = (name: string, source: Parameter["in"]) => {
    if (source === "path") return variable;
    return source === "query" ? texts.get(name) : (request.headers.get(name) ?? undefined);
  };
  const value: Record<string, unknown> = {};
  for (const name in parameters) {
    const parameter = parameters[name] as Parameter;
    const text = textOf(name, parameter.in);
    if (text === undefined) continue;
    const parsed = v.safeParse(parameter.schema, text, oneErrorEach);
    if (parsed.success) value[name] = parsed.output;
    else {
      const detail = `${parsed.issues[0].message}.`;
      errors.push(
        parameter.in === "header" ? { header: name, detail } : { parameter: name, detail },
      );
    }
  }
  return { value, errors };
}

/** The texts of the query parameters. An unknown or repeated one is an error. */
function readQuery(declared: Parameters, query: string): Checked<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  const errors: ValidationError[] = [];
  if (query === "") return { value: texts, errors };
  const repeated = new Set<string>();
  visitQuery(query, (name, text) => {
    if (texts.has(name)) repeated.add(name);
    texts.set(name, text);
  });
  const malformed = query.includes("%") ? findMalformed(query) : noNames;
  for (const parameter of texts.keys()) {
    if (errors.length >= errorsMax) break;
    if (declared[parameter]?.in !== "query") {
      errors.push({ parameter, detail: "is not a parameter of this operation." });
    } else if (repeated.has(parameter)) {
      errors.push({ parameter, detail: "must be given at most once." });
    } else if (malformed.has(parameter)) {
      errors.push({ parameter, detail: "must be valid UTF-8, percent-encoded." });
    }
  }
  return { value: texts, errors };
}

function visitQuery(query: string, visit: (name: string, text: string) => void): void {
  if (/[%+]/.test(query)) {
    new URLSearchParams(`?${query}`).forEach((text, name) => void visit(name, text));
    return;
  }
  // There is nothing to decode, and a page has to be fast.
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const equalsAt = pair.indexOf("=");
    if (equalsAt < 0) visit(pair, "");
    else visit(pair.slice(0, equalsAt), pair.slice(equalsAt + 1));
  }
}

const noNames: ReadonlySet<string> = new Set();

/**
 * The parameters whose percent-encoding isn't UTF-8, or none at all. `URLSearchParams` makes U+FFFD
 * of the one and leaves the other as it is, and both may also have been sent.
 */
function findMalformed(query: string): ReadonlySet<string> {
  if (isWellEncoded(query)) return noNames;
  const malformed = query
    .split("&")
    .values()
    .filter((pair) => !isWellEncoded(pair));
  // With more of them, some are unknown or repeated, which refuses the request as well.
  const found = malformed.take(errorsMax);
  return new Set(found.flatMap((pair) => new URLSearchParams(`?${pair}`).keys()));
}

function isWellEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
