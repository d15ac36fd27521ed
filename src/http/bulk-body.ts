/**
 * Reads the body of a bulk: an array of plants or ids. It's parsed a few items at a time, so that
 * other requests run in between: parsing 1 MiB of plants at once took up to 90 ms.
 */
import * as v from "valibot";
import { errorsMax, PlantStoreError, type ValidationError } from "../domain/errors.ts";
import {
  type PlantChange,
  type PlantDraft,
  type PlantId,
  plantDraftSchema,
  plantIdSchema,
} from "../domain/plant.ts";
import { exactInteger, itemsOf, memberText } from "../shared/json-text.ts";
import type { Call } from "./operation.ts";
import {
  type Checked,
  oneErrorEach,
  plantCharactersMax,
  validateChange,
  validateObject,
} from "./validation.ts";

export const bulkPlantsMax = 10_000;
export const bulkBytesMax = 1024 * 1024;
export const idsBytesMax = 256 * 1024;
/** How much of a body is worked on in one slice: a millisecond or two, whatever it holds. */
const turnCharactersMax = 32 * 1024;
const turnPlantsMax = 48;
const turnIdsMax = 1_000;
/** Roughly what a response takes while it's being sent: a chunk, its bytes, the stream. */
const streamBytes = 64 * 1024;
/** Roughly what a plant and its result take, besides its name and tag, which the body covers. */
const plantBytes = 105;
/** Roughly what an id takes in a set and in an array. */
const idBytes = 64;

/** Fails with `too-large` if there are too many plants, or with `overloaded`. */
export async function readBulk(text: string, call: Call): Promise<Checked<readonly PlantDraft[]>> {
  // Before they are parsed, which takes far more time and memory than refusing them.
  call.reserved.add(countObjects(text) * plantBytes + streamBytes);
  const drafts: PlantDraft[] = [];
  const errors: ValidationError[] = [];
  const items = itemsOf(text, plantCharactersMax);
  const tooLong = `must have at most ${plantCharactersMax} characters.`;
  try {
    const count = await forEachItem(items, "plants", turnPlantsMax, call, (item, index) => {
      const pointer = `/${index}`;
      if (item.length > plantCharactersMax) {
        errors.push({ pointer, detail: tooLong });
        return false;
      }
      const draft = validateObject(plantDraftSchema, item, { pointer });
      errors.push(...draft.errors);
      if (draft.value) drafts.push(draft.value);
      return errors.length < errorsMax;
    });
    if (count === 0) errors.push({ pointer: "", detail: "The array must not be empty." });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    errors.push({ pointer: "", detail: `The body ${error.message}.` });
  }
  return { value: drafts, errors };
}

/**
 * Reads items until `read` returns false, and waits for a turn after every few of them. Returns how
 * many there were; fails with `too-large` if that's too many.
 */
async function forEachItem(
  items: Iterable<string>,
  name: "plants" | "ids",
  turnItemsMax: number,
  call: Call,
  read: (item: string, index: number) => boolean,
): Promise<number> {
  let count = 0;
  let turnItems = 0;
  let turnCharacters = 0;
  for (const item of items) {
    if (count === bulkPlantsMax) {
      throw new PlantStoreError("too-large", `Send at most ${bulkPlantsMax} ${name}.`);
    }
    if (!read(item, count++)) break;
    turnItems++;
    turnCharacters += item.length;
    if (turnItems < turnItemsMax && turnCharacters < turnCharactersMax) continue;
    await call.turn();
    turnItems = 0;
    turnCharacters = 0;
  }
  return count;
}

/** How many objects the text may hold, up to the most plants that are allowed. */
function countObjects(text: string): number {
  let count = 0;
  for (let at = text.indexOf("{"); at >= 0 && count < bulkPlantsMax; at = text.indexOf("{", at + 1))
    count++;
  return count;
}

const idsSchema = { ids: v.custom<unknown>(Array.isArray, "must be an array of ids") };
const deletionSchema = v.object(idsSchema, () => "is required");
const updateSchema = v.object(
  { ...idsSchema, set: v.custom<object>(isObject, "must be an object") },
  () => "is required",
);

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The ids of plants to delete, each of them once. Fails as `readBulk` does. */
export async function readDeletion(text: string, call: Call): Promise<Checked<readonly PlantId[]>> {
  const { errors } = validateObject(deletionSchema, text);
  const ids = isReadable("/ids", errors) ? await readIds(text, call) : noIds;
  return { value: ids.value, errors: [...errors, ...ids.errors] };
}

/** The ids of plants to change, as for deleting them, and what to set. */
export async function readUpdate(
  text: string,
  call: Call,
): Promise<Checked<{ readonly ids: readonly PlantId[]; readonly set: PlantChange }>> {
  const { errors } = validateObject(updateSchema, text);
  const set = isReadable("/set", errors)
    ? validateChange(memberText(text, "set"), "/set")
    : { value: undefined, errors: [] };
  const ids = isReadable("/ids", errors) ? await readIds(text, call) : noIds;
  return {
    value: { ids: ids.value, set: set.value ?? {} },
    errors: [...errors, ...set.errors, ...ids.errors],
  };
}

const noIds: Checked<readonly PlantId[]> = { value: [], errors: [] };

/** Whether nothing is wrong so far with the body, or with this member of it. */
function isReadable(member: string, errors: readonly ValidationError[]): boolean {
  return !errors.some((each) => "pointer" in each && ["", member].includes(each.pointer));
}

async function readIds(text: string, call: Call): Promise<Checked<readonly PlantId[]>> {
  // As for plants. An id and its comma take at least two characters.
  call.reserved.add(Math.min(bulkPlantsMax, text.length / 2) * idBytes + streamBytes);
  const ids = new Set<PlantId>();
  const errors: ValidationError[] = [];
  const items = itemsOf(memberText(text, "ids"));
  const count = await forEachItem(items, "ids", turnIdsMax, call, (item, index) => {
    const parsed = v.safeParse(plantIdSchema, exactInteger(item), oneErrorEach);
    if (parsed.success) ids.add(parsed.output);
    else errors.push({ pointer: `/ids/${index}`, detail: `${parsed.issues[0].message}.` });
    return errors.length < errorsMax;
  });
  if (count === 0) errors.push({ pointer: "/ids", detail: "must not be empty." });
  return { value: [...ids], errors };
}
