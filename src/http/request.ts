/** Turns a request into valid input, or refuses it with every validation error. */
import * as v from "valibot";
import type { Caller } from "../domain/caller.ts";
import { PlantStoreError, type ValidationError } from "../domain/errors.ts";
import { parseJsonObject } from "../json-text.ts";
import type { Admission } from "./admission.ts";
import { checkContentType, readBody, smallBodyBytes } from "./body.ts";
import type { Input, Operation } from "./operation.ts";
import type { Parameter } from "./parameters.ts";

export interface Target {
  readonly path: string;
  readonly query: string;
}

/** `new URL` is slow, and throws on an odd `Host`. */
export function readTarget(url: string): Target {
  const authorityAt = url.startsWith("/") ? -1 : url.indexOf("://");
  const pathAt = authorityAt < 0 ? 0 : url.indexOf("/", authorityAt + 3);
  if (pathAt < 0) return { path: "/", query: "" };
  const queryAt = url.indexOf("?", pathAt);
  if (queryAt < 0) return { path: url.slice(pathAt), query: "" };
  return { path: url.slice(pathAt, queryAt), query: url.slice(queryAt + 1) };
}

const hostForm = /^(?:[\w.~%!$&'()*+;=-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Repeated headers arrive joined by a comma, which no host holds. */
export function checkHost(host: string | null): void {
  if (hostForm.test(host ?? "")) return;
  throw refuse([{ header: "Host", detail: "must be given once and name a host." }]);
}

/**
 * The token of `Authorization: Bearer <token>`, if there is one. A cached token keeps the whole
 * header in memory, so only a few spaces are allowed before it.
 */
export function readBearerToken(headers: Headers): string | undefined {
  return /^bearer {1,16}(.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
}

const requestIdForm = /^[\w.-]{1,128}$/;
/** An id is logged and a token never is, so an id that holds one is replaced. */
const tokenForm = /plant_[0-9a-z]{20}/i;

/** The id that the client sent, if it is well-formed, or a new one. */
export function createRequestIds(): (headers: Headers) => string {
  // A random prefix and a counter: unique, and cheap on the hot path.
  const prefix = crypto.randomUUID().slice(-12);
  let count = 0;
  return (headers) => {
    const given = headers.get("x-request-id");
    const isTaken = given !== null && requestIdForm.test(given) && !tokenForm.test(given);
    return isTaken ? given : `${prefix}-${(++count).toString(36)}`;
  };
}

/** What is known of a request when its input is read. */
export interface Arrival {
  readonly request: Request;
  query: string;
  /** What stands in the place of the variable part of the path. */
  variable: string;
  caller: Caller | undefined;
  body: "none" | "unread" | "read";
}

/** At once where the operation takes no body, and else when the body has come. */
export function readInput(
  operation: Operation,
  arrival: Arrival,
  admission: Admission,
): Input | Promise<Input> {
  const { request, caller } = arrival;
  if (operation.body) checkContentType(request.headers);
  const errors: ValidationError[] = [];
  const parameters = readParameters(operation, arrival, errors);
  const complete = (body: unknown): Input => {
    if (errors.length > 0) throw refuse(errors);
    return { caller, parameters, body };
  };

  if (!operation.body) {
    if (arrival.body !== "none") {
      errors.push({ pointer: "", detail: "This operation takes no body." });
    }
    return complete(undefined);
  }
  const { schema } = operation.body;
  return readBody(request).then(
    (text) => {
      arrival.body = "read";
      const validate = () => complete(validateBody(schema, text, errors));
      // Hundreds of long bodies can end in the same tick, and each takes milliseconds.
      return text.length > smallBodyBytes ? admission.start(validate) : validate();
    },
    (error) => {
      if (!(error instanceof PlantStoreError) || error.code !== "invalid-request") throw error;
      errors.push(...error.errors);
      return complete(undefined);
    },
  );
}

/** One error for each field or parameter is enough. */
const oneErrorEach = { abortPipeEarly: true } as const;

function readParameters(
  operation: Operation,
  { request, query, variable }: Arrival,
  errors: ValidationError[],
): Record<string, unknown> {
  const texts = readQuery(operation, query, errors);
  const textOf = (name: string, place: Parameter["in"]) => {
    if (place === "path") return variable;
    return place === "query" ? texts.get(name) : (request.headers.get(name) ?? undefined);
  };
  const values: Record<string, unknown> = {};
  for (const name in operation.parameters) {
    const parameter = operation.parameters[name] as Parameter;
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
  operation: Operation,
  query: string,
  errors: ValidationError[],
): Map<string, string> {
  const texts = new Map<string, string>();
  if (query === "") return texts;
  // Three times as fast as to iterate over it.
  new URLSearchParams(`?${firstOf(query)}`).forEach((text, name) => {
    if (operation.parameters[name]?.in !== "query") {
      errors.push({ parameter: name, detail: "is not a parameter of this operation." });
    } else if (texts.has(name)) {
      errors.push({ parameter: name, detail: "must be given at most once." });
    }
    texts.set(name, text);
  });
  return texts;
}

const parametersMax = 300;

/**
 * The part of the query that is read. No operation takes this many parameters, so the request is
 * refused anyway; reading thousands of them took 9 ms.
 */
function firstOf(query: string): string {
  // A shorter query cannot hold too many.
  if (query.length <= 2 * parametersMax) return query;
  let count = 0;
  for (let at = 0, end = 0; at < query.length; at = end + 1) {
    const next = query.indexOf("&", at);
    end = next < 0 ? query.length : next;
    if (end > at && ++count > parametersMax) return query.slice(0, at);
  }
  return query;
}

function validateBody(schema: v.GenericSchema, text: string, errors: ValidationError[]): unknown {
  const object = parseJsonObject(text);
  if (!object) {
    const detail = text === "" ? "The body is empty." : "The body must be one JSON object.";
    errors.push({ pointer: "", detail });
    return undefined;
  }
  const { members, repeatedKeys } = object;
  const known = (schema as unknown as { entries: Record<string, unknown> }).entries;
  for (const key of Object.keys(members)) {
    if (!Object.hasOwn(known, key)) {
      errors.push({ pointer: toPointer(key), detail: "is not a field of this body." });
    }
  }
  for (const key of repeatedKeys) {
    errors.push({ pointer: toPointer(key), detail: "must be given at most once." });
  }
  const parsed = v.safeParse(schema, members, oneErrorEach);
  if (parsed.success) return parsed.output;
  for (const issue of parsed.issues) {
    const key = String(issue.path?.[0]?.key ?? "");
    errors.push({ pointer: toPointer(key), detail: `${issue.message}.` });
  }
  return undefined;
}

/** RFC 6901. */
function toPointer(key: string): string {
  return `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** A response should not be much longer than the request. */
const errorsMax = 100;

function refuse(errors: readonly ValidationError[]): PlantStoreError {
  const distinct = new Map(errors.map((fault) => [`${placeOf(fault)} ${fault.detail}`, fault]));
  const [first] = errors;
  const shown = [...distinct.values()].slice(0, errorsMax);
  const more = distinct.size > 1 ? ` (and ${distinct.size - 1} more; see errors)` : "";
  return new PlantStoreError("invalid-request", `${first ? describe(first) : ""}${more}`, {
    errors: shown,
  });
}

function describe(fault: ValidationError): string {
  if ("parameter" in fault) return `${fault.parameter} ${fault.detail}`;
  if ("header" in fault) return `${fault.header} ${fault.detail}`;
  return fault.pointer === "" ? fault.detail : `${fault.pointer.slice(1)} ${fault.detail}`;
}

/** A text that differs for each place. */
function placeOf(fault: ValidationError): string {
  if ("parameter" in fault) return `?${fault.parameter}`;
  return "header" in fault ? `:${fault.header}` : fault.pointer;
}
