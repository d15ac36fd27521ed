/** JSON text → a valid object, or every validation error. */
import * as v from "valibot";
import { errorsMax, type ValidationError } from "../domain/errors.ts";
import { contentFields, type PlantChange, plantChangeSchema } from "../domain/plant.ts";
import { parseJsonObject, startsObject } from "../json-text.ts";

/** One error for each field or parameter is enough. */
export const oneErrorEach = { abortPipeEarly: true } as const;

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
    add(key, "is not a field here.");
  }
  for (const key of new Set(repeatedKeys)) add(key, "must be given at most once.");
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

function whyNotObject(text: string): string {
  if (text === "") return "is empty";
  return startsObject(text) ? "is not valid JSON" : "must be one JSON object";
}

const keyCharactersMax = 200;

/** A response should not be much longer than the request, so a long key is cut. */
function toPointer(key: string): string {
  const shown = key.length > keyCharactersMax ? `${key.slice(0, keyCharactersMax)}…` : key;
  return `/${shown.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
