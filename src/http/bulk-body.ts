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
  plantChangeSchema,
  plantDraftSchema,
  plantIdSchema,
} from "../domain/plant.ts";
import {
  exactInteger,
  itemsOf,
  type JsonPart,
  membersOf,
  NotJsonError,
  parsePart,
} from "../shared/json-text.ts";
import type { Call } from "./operation.ts";
import {
  type Checked,
  notField,
  oneErrorEach,
  plantCharactersMax,
  repeatedField,
  toPointer,
  validateChange,
  validateObject,
} from "./validation.ts";

export const bulkPlantsMax = 10_000;
export const bulkBytesMax = 1024 * 1024;
export const idsBytesMax = 256 * 1024;
const tooLong = `must have at most ${plantCharactersMax} characters.`;
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
  try {
    const count = await forEachItem(items, "plants", turnPlantsMax, call, (item, index) => {
      const pointer = `/${index}`;
      if (item.text.length > plantCharactersMax) {
        errors.push({ pointer, detail: tooLong });
        return false;
      }
      const draft = validateObject(plantDraftSchema, item.text, { pointer });
      if (draft.value) drafts.push(draft.value);
      // Unless it is no JSON at all, which is an error of the whole body.
      else parsePart(item);
      errors.push(...draft.errors);
      return errors.length < errorsMax;
    });
    if (count === 0) errors.push({ pointer: "", detail: "The array must not be empty." });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { value: [], errors: [toBodyError(error, text)] };
  }
  return { value: drafts, errors };
}

/** Says where the body isn't JSON, instead of what is wrong with the items before that. */
function toBodyError(error: SyntaxError, text: string): ValidationError {
  return { pointer: "", detail: `The body ${describeSyntax(error, text)}.` };
}

function describeSyntax(error: SyntaxError, text: string): string {
  if (text === "") return "is empty";
  if (!(error instanceof NotJsonError)) return error.message;
  if (error.at >= text.length) return `${error.message}: it ends too early`;
  return `${error.message}: see what begins at character ${error.at + 1}`;
}

/**
 * Reads items until `read` returns false, and waits for a turn after every few of them. Returns how
 * many there were; fails with `too-large` if that's too many.
 */
async function forEachItem(
  items: Iterable<JsonPart>,
  name: "plants" | "ids",
  turnItemsMax: number,
  call: Call,
  read: (item: JsonPart, index: number) => boolean,
): Promise<number> {
  const slice = new Slice(turnItemsMax);
  let count = 0;
  for (const item of items) {
    if (count === bulkPlantsMax) {
      throw new PlantStoreError("too-large", `Send at most ${bulkPlantsMax} ${name}.`);
    }
    if (!read(item, count++)) break;
    if (slice.endsAfter(item.text)) await call.turn();
  }
  return count;
}

/** Counts what is worked on, until it's time to wait for a turn. */
class Slice {
  #items = 0;
  #characters = 0;

  constructor(private readonly itemsMax: number) {}

  /** Whether the slice is over with this item. If so, the next one begins. */
  endsAfter({ length }: string): boolean {
    this.#items++;
    this.#characters += length;
    if (this.#items < this.itemsMax && this.#characters < turnCharactersMax) return false;
    this.#items = 0;
    this.#characters = 0;
    return true;
  }
}

/** How many objects the text may hold, up to the most plants that are allowed. */
function countObjects(text: string): number {
  let count = 0;
  for (let at = text.indexOf("{"); at >= 0 && count < bulkPlantsMax; at = text.indexOf("{", at + 1))
    count++;
  return count;
}

/** The ids of plants to delete, each of them once. Fails as `readBulk` does. */
export async function readDeletion(text: string, call: Call): Promise<Checked<readonly PlantId[]>> {
  const { value, errors } = await readChange(text, ["ids"], call);
  return { value: value.ids, errors };
}

/** The ids of plants to change, as for deleting them, and what to set. */
export function readUpdate(text: string, call: Call): Promise<Checked<Change>> {
  return readChange(text, ["ids", "set"], call);
}

interface Change {
  readonly ids: readonly PlantId[];
  readonly set: PlantChange;
}

type ChangeKey = keyof Change;

/** How the value of each member starts, and what is wrong if it doesn't. */
const changeMembers: Readonly<Record<ChangeKey, readonly [start: string, needed: string]>> = {
  ids: ["[", "must be an array of ids."],
  set: ["{", "must be an object."],
};

const noSet: Checked<PlantChange | undefined> = { value: undefined, errors: [] };
const noIds: Checked<readonly PlantId[]> = { value: [], errors: [] };

async function readChange(
  text: string,
  keys: readonly ChangeKey[],
  call: Call,
): Promise<Checked<Change>> {
  // As for plants. An id and its comma take at least two characters.
  call.reserved.add(Math.min(bulkPlantsMax, text.length / 2) * idBytes + streamBytes);
  try {
    const { value: members, errors } = await readMembers(text, keys, call);
    const set = members.set === undefined ? noSet : readSet(members.set);
    const ids = members.ids === undefined ? noIds : await readIds(members.ids, call);
    return {
      value: { ids: ids.value, set: set.value ?? {} },
      errors: [...errors, ...set.errors, ...ids.errors],
    };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { value: { ids: [], set: {} }, errors: [toBodyError(error, text)] };
  }
}

/**
 * The members with these keys, each as a part of the text if it can be read. Parsing the whole body would
 * hold others up: 25 ms for 256 KiB of nested arrays. Throws a `SyntaxError` if it's no JSON object.
 */
async function readMembers(
  text: string,
  keys: readonly ChangeKey[],
  call: Call,
): Promise<Checked<Partial<Record<ChangeKey, JsonPart>>>> {
  const errors: ValidationError[] = [];
  const values = new Map<string, JsonPart>();
  const repeated = new Set<string>();
  const add = (key: string, detail: string) => errors.push({ pointer: toPointer(key), detail });
  const slice = new Slice(turnIdsMax);
  for (const [key, value] of membersOf(text)) {
    if (values.has(key)) repeated.add(key);
    else if (!keys.some((each) => each === key)) {
      requireJson(value);
      add(key, notField);
    }
    values.set(key, value);
    if (errors.length + repeated.size >= errorsMax) break;
    if (slice.endsAfter(value.text)) await call.turn();
  }
  for (const key of repeated) add(key, repeatedField);
  if (errors.length >= errorsMax) return { value: {}, errors };
  const readable: Partial<Record<ChangeKey, JsonPart>> = {};
  for (const key of keys) {
    const value = values.get(key);
    const [start, needed] = changeMembers[key];
    if (value === undefined) add(key, "is required.");
    else if (!value.text.startsWith(start)) {
      requireJson(value);
      add(key, needed);
    } else if (!repeated.has(key)) readable[key] = value;
  }
  return { value: readable, errors };
}

/** Throws a `NotJsonError` if a value that is wrong anyway isn't JSON, and parsing it is quick. */
function requireJson(value: JsonPart): void {
  if (value.text.length <= plantCharactersMax) parsePart(value);
}

/** Throws a `NotJsonError` if it isn't JSON. */
function readSet(set: JsonPart): Checked<PlantChange | undefined> {
  if (set.text.length > plantCharactersMax) {
    return { value: undefined, errors: [{ pointer: "/set", detail: tooLong }] };
  }
  parsePart(set);
  return validateChange(plantChangeSchema, set.text, { pointer: "/set" });
}

/** Throws a `NotJsonError` if it isn't a JSON array. */
async function readIds(
  { text, start }: JsonPart,
  call: Call,
): Promise<Checked<readonly PlantId[]>> {
  const errors: ValidationError[] = [];
  const ids = new Set<PlantId>();
  const items = itemsOf(text, plantCharactersMax, start);
  const count = await forEachItem(items, "ids", turnIdsMax, call, (item, index) => {
    const pointer = `/ids/${index}`;
    if (item.text.length > plantCharactersMax) {
      errors.push({ pointer, detail: tooLong });
      return false;
    }
    const parsed = v.safeParse(plantIdSchema, exactInteger(item.text), oneErrorEach);
    if (parsed.success) ids.add(parsed.output);
    else {
      // Unless it is no JSON at all, which is an error of the whole body.
      parsePart(item);
      errors.push({ pointer, detail: `${parsed.issues[0].message}.` });
    }
    return errors.length < errorsMax;
  });
  if (count === 0) errors.push({ pointer: "/ids", detail: "must not be empty." });
  return { value: [...ids], errors };
}
