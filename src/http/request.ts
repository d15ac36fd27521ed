/** Turns a request into valid input, or refuses it with every validation error. */
import * as v from "valibot";
import type { Caller } from "../domain/caller.ts";
import { errorsMax, PlantStoreError, refuse, type ValidationError } from "../domain/errors.ts";
import type { IncomingRequest } from "./incoming.ts";
import type { Input, Operation } from "./operation.ts";
import type { Parameter, Parameters } from "./parameters.ts";
import type { Reservation } from "./reserved-bytes.ts";
import type { Scheduler } from "./scheduler.ts";
import { oneErrorEach } from "./validation.ts";

export async function readInput(
  operation: Operation,
  incoming: IncomingRequest,
  caller: Caller | undefined,
  reserved: Reservation,
  scheduler: Scheduler,
): Promise<Input> {
  const { request, body: sent } = incoming;
  const errors: ValidationError[] = [];
  if (!operation.body && sent.isPending) {
    errors.push({ pointer: "", detail: "This operation takes no body." });
  }
  const parameters = readParameters(operation, incoming, errors);
  for (const header of operation.refusedHeaders ?? []) {
    if (request.headers.has(header)) errors.push({ header, detail: "must not be sent here." });
  }
  // When the request arrived, its garden may not have been known.
  const queueName = caller?.garden ?? incoming.queueName;
  let body: unknown;
  if (operation.body) {
    const { bytesMax, parse } = operation.body;
    const text = await sent.read(bytesMax, reserved).catch((error) => {
      if (!(error instanceof PlantStoreError) || error.code !== "invalid-request") throw error;
      errors.push(...error.errors);
    });
    // Thousands of bodies can arrive in the same tick. What has been read isn't refused any more.
    if (!scheduler.mayRun()) await scheduler.turn(queueName);
    if (text !== undefined) {
      const turn = () => scheduler.turn(queueName);
      body = await parse(text, errors, { pathId: parameters.id, turn, reserved });
    }
  }
  const [first] = errors;
  if (first) throw refuse(first, errors);
  return { caller, token: incoming.token, request, parameters, body };
}

function readParameters(
  { parameters = {} }: Operation,
  { request, query, variable }: IncomingRequest,
  errors: ValidationError[],
): Record<string, unknown> {
  const texts = readQuery(parameters, query, errors);
  const textOf = (name: string, place: Parameter["in"]) => {
    if (place === "path") return variable;
    return place === "query" ? texts.get(name) : (request.headers.get(name) ?? undefined);
  };
  const values: Record<string, unknown> = {};
  for (const name in parameters) {
    const parameter = parameters[name] as Parameter;
    const text = textOf(name, parameter.in);
    if (text === undefined) continue;
    const parsed = v.safeParse(parameter.schema, text, oneErrorEach);
    if (parsed.success) values[name] = parsed.output;
    else {
      const detail = `${parsed.issues[0].message}.`;
      errors.push(
        parameter.in === "header" ? { header: name, detail } : { parameter: name, detail },
      );
    }
  }
  return values;
}

/** The query parameters by name. An unknown or repeated one is an error. */
function readQuery(
  declared: Parameters,
  query: string,
  errors: ValidationError[],
): Map<string, string> {
  const texts = new Map<string, string>();
  if (query === "") return texts;
  const repeated = new Set<string>();
  // Three times as fast as iterating.
  new URLSearchParams(`?${query}`).forEach((text, name) => {
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
  return texts;
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
