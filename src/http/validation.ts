/** Holds JSON against the schemas of plants, and reports every validation error. */
import * as v from "valibot";
import { errorsMax, type ValidationError } from "../domain/errors.ts";
import {
  contentCharactersMax,
  contentFields,
  type PlantChange,
  type plantChangeSchema,
  type plantPatchSchema,
} from "../domain/plant.ts";
import { parseJsonObject, startsObject } from "../shared/json-text.ts";

/** The most that a valid plant needs as JSON: each character escaped, and 496 for all the rest. */
export const plantCharactersMax = 6 * contentCharactersMax + 496;

/** What was read, and what is wrong with it. The value counts only if nothing is. */
export interface Checked<Value> {
  readonly value: Value;
  readonly errors: readonly ValidationError[];
}

/** One error for each field or parameter is enough. */
export const oneErrorEach = { abortPipeEarly: true } as const;
export const notField = "is not a field here.";
export const repeatedField = "must be given at most once.";

interface ObjectPlace {
  /** Where the object is in the body (RFC 6901); empty if it's the body. */
  readonly pointer?: string;
  /** The id in the path, if there is one. */
  readonly pathId?: unknown;
}

export function validateObject<Schema extends v.GenericSchema>(
  schema: Schema,
  text: string,
  { pointer = "", pathId }: ObjectPlace = {},
): Checked<v.InferOutput<Schema> | undefined> {
  const object = parseJsonObject(text);
  if (!object) return { value: undefined, errors: [notAnObject(pointer, text)] };
  const { members, repeatedKeys } = object;
  const errors: ValidationError[] = [];
  const add = (key: string, detail: string) =>
    errors.push({ pointer: `${pointer}${toPointer(key)}`, detail });
  const known = (schema as unknown as { entries: Record<string, unknown> }).entries;
  for (const key of Object.keys(members)) {
    if (errors.length >= errorsMax) break;
    if (!Object.hasOwn(known, key)) add(key, notField);
  }
  for (const key of new Set(repeatedKeys)) {
    if (errors.length >= errorsMax) break;
    add(key, repeatedField);
  }
  if (pathId !== undefined && typeof members.id === "bigint" && members.id !== pathId) {
    add("id", "must be the id in the path, or left out.");
  }
  const parsed = v.safeParse(schema, members, oneErrorEach);
  if (parsed.success) return { value: parsed.output, errors };
  for (const issue of parsed.issues) {
    add(String(issue.path?.[0]?.key ?? ""), `${issue.message}.`);
  }
  return { value: undefined, errors };
}

/** The fields of a plant that change, at least one. `null` makes one empty, as in RFC 7396. */
export function validateChange(
  schema: typeof plantChangeSchema | typeof plantPatchSchema,
  text: string,
  place: ObjectPlace = {},
): Checked<PlantChange | undefined> {
  const { pointer = "" } = place;
  const { value: change, errors } = validateObject(schema, text, place);
  if (!change || errors.length > 0) return { value: undefined, errors };
  const given = contentFields.flatMap((field) =>
    change[field] === undefined ? [] : [[field, change[field] ?? ""]],
  );
  if (given.length > 0) return { value: Object.fromEntries(given), errors };
  const needed = `must have at least one of these fields: ${contentFields.join(", ")}.`;
  const detail = pointer === "" ? `The body ${needed}` : needed;
  return { value: undefined, errors: [{ pointer, detail }] };
}

function notAnObject(pointer: string, text: string): ValidationError {
  const subject = pointer === "" ? "The body " : "";
  return { pointer, detail: `${subject}${whyNotObject(text)}.` };
}

function whyNotObject(text: string): string {
  if (text === "") return "is empty";
  return startsObject(text) ? "is not valid JSON" : "must be one JSON object";
}

const keyCharactersMax = 200;

/** A response should not be much longer than the request, so a long key is cut. */
export function toPointer(key: string): string {
  const shown = key.length > keyCharactersMax ? `${key.slice(0, keyCharactersMax)}…` : key;
  return `/${shown.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
