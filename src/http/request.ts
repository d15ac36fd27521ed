/** Turns a request into valid input, or refuses it with every validation error. */
import * as v from "valibot";
import type { Caller } from "../domain/caller.ts";
import { errorsMax, PlantStoreError, refuse, type ValidationError } from "../domain/errors.ts";
import { contentFields, type PlantChange, plantChangeSchema } from "../domain/plant.ts";
import { parseJsonObject, startsObject } from "../json-text.ts";
import type { IncomingRequest } from "./incoming.ts";
import type { Input, Operation } from "./operation.ts";
import type { Parameter, Parameters } from "./parameters.ts";
import type { Reservation } from "./reserved-bytes.ts";
import type { Scheduler } from "./scheduler.ts";

/** One error for each field or parameter is enough. */
export const oneErrorEach = { abortPipeEarly: true } as const;
export const notField = "is not a field here.";
export const repeatedField = "must be given at most once.";

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

interface ObjectPlace {
  /** Where the object is in the body (RFC 6901); empty if it's the body. */
  readonly pointer?: string;
  /** The id in the path, if there is one. */
  readonly pathId?: unknown;
}

/** Adds what is wrong to `errors`; the value counts only if nothing is. */
export function validateObject<Schema extends v.GenericSchema>(
  schema: Schema,
  text: string,
  errors: ValidationError[],
  { pointer = "", pathId }: ObjectPlace = {},
): v.InferOutput<Schema> | undefined {
  const object = parseJsonObject(text);
  if (!object) {
    const subject = pointer === "" ? "The body " : "";
    errors.push({ pointer, detail: `${subject}${whyNotObject(text)}.` });
    return undefined;
  }
  const { members, repeatedKeys } = object;
  const known = (schema as unknown as { entries: Record<string, unknown> }).entries;
  const add = (key: string, detail: string) =>
    errors.push({ pointer: `${pointer}${toPointer(key)}`, detail });
  for (const key of Object.keys(members)) {
    if (Object.hasOwn(known, key)) continue;
    if (errors.length >= errorsMax) break;
    add(key, notField);
  }
  for (const key of new Set(repeatedKeys)) add(key, repeatedField);
  if (pathId !== undefined && typeof members.id === "bigint" && members.id !== pathId) {
    add("id", "must be the id in the path, or left out.");
  }
  const parsed = v.safeParse(schema, members, oneErrorEach);
  if (parsed.success) return parsed.output;
  for (const issue of parsed.issues) {
    add(String(issue.path?.[0]?.key ?? ""), `${issue.message}.`);
  }
  return undefined;
}

/** The fields of a plant that change, at least one. */
export function validateChange(
  text: string,
  errors: ValidationError[],
  pointer = "",
): PlantChange | undefined {
  const earlier = errors.length;
  const change = validateObject(plantChangeSchema, text, errors, { pointer });
  if (!change || errors.length > earlier) return undefined;
  const given = contentFields.flatMap((field) =>
    change[field] === undefined ? [] : [[field, change[field]]],
  );
  if (given.length > 0) return Object.fromEntries(given);
  const needed = `must have at least one of these fields: ${contentFields.join(", ")}.`;
  errors.push({ pointer, detail: pointer === "" ? `The body ${needed}` : needed });
  return undefined;
}

export function whyNotObject(text: string): string {
  if (text === "") return "is empty";
  return startsObject(text) ? "is not valid JSON" : "must be one JSON object";
}

const keyCharactersMax = 200;

/** A response should not be much longer than the request, so a long key is cut. */
export function toPointer(key: string): string {
  const shown = key.length > keyCharactersMax ? `${key.slice(0, keyCharactersMax)}…` : key;
  return `/${shown.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
