/** Turns a request into valid input, or refuses it with every validation error. */
import * as v from "valibot";
import { errorsMax, PlantStoreError, refuse, type ValidationError } from "../domain/errors.ts";
import { readBody } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import type { Input, Operation, OperationWithBody, RequestBody } from "./operation.ts";
import type { Parameter, Parameters } from "./parameters.ts";
import { type Checked, oneErrorEach } from "./validation.ts";

/** The input of an operation without a body. Fails with `invalid-request`. */
export function readInput(operation: Operation, exchange: Exchange): Input {
  return toInput(operation, exchange, readParameters(operation, exchange), checkNoBody(exchange));
}

/** Fails with `invalid-request`, or with what refuses the body as a whole. */
export async function readInputWithBody(
  operation: OperationWithBody,
  exchange: Exchange,
): Promise<Input> {
  exchange.declaredBody.check(operation.body);
  const parameters = readParameters(operation, exchange);
  const body = await parseBody(operation.body, exchange, parameters.value.id);
  return toInput(operation, exchange, parameters, body);
}

function toInput(
  operation: Operation,
  { request }: Exchange,
  parameters: Checked<Record<string, unknown>>,
  body: Checked<unknown>,
): Input {
  const headerErrors = checkHeaders(operation, request.headers);
  const errors = [...parameters.errors, ...headerErrors, ...body.errors];
  const [first] = errors;
  if (first) throw refuse(first, errors);
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

function checkNoBody({ hasUnreadBody }: Exchange): Checked<undefined> {
  const errors = hasUnreadBody ? [{ pointer: "", detail: "This operation takes no body." }] : [];
  return { value: undefined, errors };
}

function checkHeaders({ refusedHeaders = [] }: Operation, sent: Headers): ValidationError[] {
  const refused = refusedHeaders.filter((header) => sent.has(header));
  return refused.map((header) => ({ header, detail: "must not be sent here." }));
}

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
  for (const [parameter, text] of texts) {
    if (errors.length >= errorsMax) break;
    if (declared[parameter]?.in !== "query") {
      errors.push({ parameter, detail: "is not a parameter of this operation." });
    } else if (repeated.has(parameter)) {
      errors.push({ parameter, detail: "must be given at most once." });
    } else if (text.includes("\ufffd") && !isWellEncoded(query)) {
      errors.push({ parameter, detail: "must be valid UTF-8." });
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

/** Bytes that are not UTF-8 become U+FFFD, which may also have been sent. */
function isWellEncoded(query: string): boolean {
  try {
    decodeURIComponent(query);
    return true;
  } catch {
    return false;
  }
}
