/** Turns a request into valid input, or refuses it with every validation error. */
import * as v from "valibot";
import type { Caller } from "../domain/caller.ts";
import {
  errorsMax,
  overloaded,
  PlantStoreError,
  refuse,
  type ValidationError,
} from "../domain/errors.ts";
import { parseJsonObject, startsObject } from "../json-text.ts";
import type { Arrival } from "./arrival.ts";
import { checkContentType, jsonLines } from "./body.ts";
import type { Input, Operation } from "./operation.ts";
import type { Parameter, Parameters } from "./parameters.ts";
import type { Reservation } from "./reserved-bytes.ts";
import type { Scheduler } from "./scheduler.ts";

export async function readInput(
  operation: Operation,
  arrival: Arrival,
  caller: Caller | undefined,
  reserved: Reservation | undefined,
  scheduler: Scheduler,
): Promise<Input> {
  const { request, body: incoming } = arrival;
  const { headers } = request;
  const isHead = request.method === "HEAD";
  const errors: ValidationError[] = [];
  if (operation.body) checkContentType(headers, operation.body.type);
  else if (incoming.isPending) {
    errors.push({ pointer: "", detail: "This operation takes no body." });
  }
  const parameters = readParameters(operation, arrival, errors);
  let body: unknown;
  if (operation.body && reserved) {
    const { type, schema } = operation.body;
    const text = await incoming.read(type, reserved).catch((error) => {
      if (!(error instanceof PlantStoreError) || error.code !== "invalid-request") throw error;
      errors.push(...error.errors);
    });
    // Thousands of bodies can arrive in the same tick.
    if (!scheduler.mayRun() && (await scheduler.turn(arrival.queue))) throw overloaded;
    // Lines are validated one by one, while they are worked on.
    if (text === undefined || type === jsonLines) body = text;
    else body = validateObject(schema, text, errors, "body", parameters.id);
  }
  const [first] = errors;
  if (first) throw refuse(first, errors);
  return { caller, headers, parameters, body, isHead, reserved };
}

/** One error for each field or parameter is enough. */
const oneErrorEach = { abortPipeEarly: true } as const;

function readParameters(
  { parameters = {} }: Operation,
  { request, query, variable }: Arrival,
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
  // Three times as fast as to iterate over it.
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

/**
 * Adds what is wrong to `errors`; the value counts only if nothing is. `pathId` is the id in the
 * path, if there is one.
 */
export function validateObject(
  schema: v.GenericSchema,
  text: string,
  errors: ValidationError[],
  place: "body" | "line",
  pathId?: unknown,
): unknown {
  const object = parseJsonObject(text);
  if (!object) {
    errors.push({ pointer: "", detail: `The ${place} ${whyNotObject(text)}.` });
    return undefined;
  }
  const { members, repeatedKeys } = object;
  const known = (schema as unknown as { entries: Record<string, unknown> }).entries;
  for (const key of Object.keys(members)) {
    if (Object.hasOwn(known, key)) continue;
    if (errors.length >= errorsMax) break;
    errors.push({ pointer: toPointer(key), detail: `is not a field of this ${place}.` });
  }
  for (const key of new Set(repeatedKeys)) {
    errors.push({ pointer: toPointer(key), detail: "must be given at most once." });
  }
  if (pathId !== undefined && typeof members.id === "bigint" && members.id !== pathId) {
    errors.push({ pointer: "/id", detail: "must be the id in the path, or left out." });
  }
  const parsed = v.safeParse(schema, members, oneErrorEach);
  if (parsed.success) return parsed.output;
  for (const issue of parsed.issues) {
    const key = String(issue.path?.[0]?.key ?? "");
    errors.push({ pointer: toPointer(key), detail: `${issue.message}.` });
  }
  return undefined;
}

function whyNotObject(text: string): string {
  // Of a file with CRLF, a blank line is a carriage return.
  if (text === "" || text === "\r") return "is empty";
  if (text.startsWith("\ufeff")) {
    return "must be one JSON object, without a byte order mark before it";
  }
  return startsObject(text) ? "is not valid JSON" : "must be one JSON object";
}

const keyCharactersMax = 200;

/** RFC 6901. A response should not be much longer than the request, so a long key is cut. */
function toPointer(key: string): string {
  const shown = key.length > keyCharactersMax ? `${key.slice(0, keyCharactersMax)}…` : key;
  return `/${shown.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
