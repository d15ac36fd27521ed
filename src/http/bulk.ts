/**
 * Many plants in one request: an array of plants or ids in, an array of results out. Both are
 * parsed and rendered a few plants at a time, so that other requests run in between: parsing 1 MiB
 * of plants at once took up to 90 ms.
 */
import * as v from "valibot";
import { errorsMax, PlantStoreError, type ValidationError } from "../domain/errors.ts";
import {
  contentCharactersMax,
  type PlantChange,
  type PlantDraft,
  type PlantId,
  plantDraftSchema,
  plantIdSchema,
} from "../domain/plant.ts";
import { refusalOf } from "../domain/plants.ts";
import type { Outcome } from "../domain/ports.ts";
import { exactInteger, itemsOf, membersOf } from "../json-text.ts";
import type { ParseContext } from "./operation.ts";
import { problemInfo } from "./problem.ts";
import {
  notField,
  oneErrorEach,
  repeatedField,
  toPointer,
  validateChange,
  validateObject,
  whyNotObject,
} from "./request.ts";
import type { Source } from "./stream.ts";

export const bulkPlantsMax = 10_000;
export const bulkBytesMax = 1024 * 1024;
export const idsBytesMax = 256 * 1024;
/** More than any valid plant needs, with each character escaped: 4,096. */
export const plantCharactersMax = 6 * contentCharactersMax + 496;
const tooLong = `must have at most ${plantCharactersMax} characters.`;
/** How much of a body is worked on in one slice: a millisecond or two, whatever it holds. */
const turnCharactersMax = 32 * 1024;
const turnPlantsMax = 48;
const turnIdsMax = 1_000;
const chunkCharacters = 16 * 1024;
/** Roughly what a response takes while it's being sent: a chunk, its bytes, the stream. */
const streamBytes = 64 * 1024;
/** Roughly what a plant and its result take, besides its name and tag, which the body covers. */
const plantBytes = 105;
/** With fewer results, the response is sent whole. */
const streamedResultsMin = 64;
/** Roughly what an id takes in a set and in an array. */
const idBytes = 64;

type BulkContext = Pick<ParseContext, "turn" | "reserved">;

/**
 * The plants of a bulk. Adds what is wrong to `errors`; the plants count only if nothing is. Fails
 * with `too-large` if there are too many, or with `overloaded`.
 */
export async function readBulk(
  text: string,
  errors: ValidationError[],
  { turn, reserved }: BulkContext,
): Promise<readonly PlantDraft[]> {
  // Before they are parsed, which takes far more time and memory than refusing them.
  reserved.add(countObjects(text) * plantBytes + streamBytes);
  const drafts: PlantDraft[] = [];
  const items = itemsOf(text, plantCharactersMax);
  try {
    const count = await forEachItem(items, "plants", turnPlantsMax, turn, (item, index) => {
      const pointer = `/${index}`;
      if (item.length > plantCharactersMax) {
        errors.push({ pointer, detail: tooLong });
        return false;
      }
      const draft = validateObject(plantDraftSchema, item, errors, { pointer });
      if (draft) drafts.push(draft);
      return errors.length < errorsMax;
    });
    if (count === 0) errors.push({ pointer: "", detail: "The array must not be empty." });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    errors.push({ pointer: "", detail: `The body ${error.message}.` });
  }
  return drafts;
}

/**
 * Reads items until `read` returns false, and waits for a turn after every few of them. Returns how
 * many there were; fails with `too-large` if that's too many.
 */
async function forEachItem(
  items: Iterable<string>,
  name: "plants" | "ids",
  turnItemsMax: number,
  turn: () => Promise<unknown>,
  read: (item: string, index: number) => boolean,
): Promise<number> {
  const slice = new Slice(turnItemsMax);
  let count = 0;
  for (const item of items) {
    if (count === bulkPlantsMax) {
      throw new PlantStoreError("too-large", `Send at most ${bulkPlantsMax} ${name}.`);
    }
    if (!read(item, count++)) break;
    if (slice.endsAfter(item)) await turn();
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

/**
 * The ids of plants to delete, each of them once. Adds what is wrong to `errors`; the ids count
 * only if nothing is. Fails with `too-large` if there are too many, or with `overloaded`.
 */
export async function readDeletion(
  text: string,
  errors: ValidationError[],
  context: BulkContext,
): Promise<readonly PlantId[]> {
  return (await readChange(text, ["ids"], errors, context)).ids;
}

/** The ids of plants to change, as for deleting them, and what to set. */
export function readUpdate(
  text: string,
  errors: ValidationError[],
  context: BulkContext,
): Promise<Change> {
  return readChange(text, ["ids", "set"], errors, context);
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

async function readChange(
  text: string,
  keys: readonly ChangeKey[],
  errors: ValidationError[],
  { turn, reserved }: BulkContext,
): Promise<Change> {
  // As for plants. An id and its comma take at least two characters.
  reserved.add(Math.min(bulkPlantsMax, text.length / 2) * idBytes + streamBytes);
  const found: ValidationError[] = [];
  try {
    const members = await readMembers(text, keys, found, turn);
    const set = members.set === undefined ? {} : readSet(members.set, found);
    const ids = members.ids === undefined ? [] : await readIds(members.ids, found, turn);
    errors.push(...found);
    return { ids, set };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    errors.push({ pointer: "", detail: `The body ${whyNotObject(text)}.` });
    return { ids: [], set: {} };
  }
}

/**
 * The members with these keys, each as its text if it can be read. The body isn't parsed as a
 * whole, which took up to 75 ms. Throws a `SyntaxError` if it's no JSON object.
 */
async function readMembers(
  text: string,
  keys: readonly ChangeKey[],
  errors: ValidationError[],
  turn: () => Promise<unknown>,
): Promise<Partial<Record<ChangeKey, string>>> {
  const values = new Map<string, string>();
  const repeated = new Set<string>();
  const add = (key: string, detail: string) => errors.push({ pointer: toPointer(key), detail });
  const slice = new Slice(turnIdsMax);
  for (const [key, value] of membersOf(text)) {
    if (values.has(key)) repeated.add(key);
    else if (!keys.some((each) => each === key)) add(key, notField);
    values.set(key, value);
    if (errors.length + repeated.size >= errorsMax) break;
    if (slice.endsAfter(value)) await turn();
  }
  for (const key of repeated) add(key, repeatedField);
  if (errors.length >= errorsMax) return {};
  const readable: Partial<Record<ChangeKey, string>> = {};
  for (const key of keys) {
    const value = values.get(key);
    const [start, needed] = changeMembers[key];
    if (value === undefined) add(key, "is required.");
    else if (!value.startsWith(start)) add(key, needed);
    else if (!repeated.has(key)) readable[key] = value;
  }
  return readable;
}

/** Throws a `SyntaxError` if the text is not JSON. */
function readSet(text: string, errors: ValidationError[]): PlantChange {
  if (text.length > plantCharactersMax) {
    errors.push({ pointer: "/set", detail: tooLong });
    return {};
  }
  // What isn't JSON is an error of the body.
  JSON.parse(text);
  return validateChange(text, errors, "/set") ?? {};
}

/** Throws a `SyntaxError` if the text is not a JSON array. */
async function readIds(
  text: string,
  errors: ValidationError[],
  turn: () => Promise<unknown>,
): Promise<PlantId[]> {
  const ids = new Set<PlantId>();
  const items = itemsOf(text, plantCharactersMax);
  const count = await forEachItem(items, "ids", turnIdsMax, turn, (item, index) => {
    const pointer = `/ids/${index}`;
    if (item.length > plantCharactersMax) {
      errors.push({ pointer, detail: tooLong });
      return false;
    }
    const parsed = v.safeParse(plantIdSchema, exactInteger(item), oneErrorEach);
    if (parsed.success) ids.add(parsed.output);
    else {
      // As above.
      JSON.parse(item);
      errors.push({ pointer, detail: `${parsed.issues[0].message}.` });
    }
    return errors.length < errorsMax;
  });
  if (count === 0) errors.push({ pointer: "/ids", detail: "must not be empty." });
  return [...ids];
}

export function renderChanged(
  done: "deleted" | "updated",
  count: number,
  missing: readonly PlantId[],
): string | Source<string> {
  const render = (index: number) => String(missing[index]);
  return renderResults(`{"${done}":${count},"missing":[`, missing.length, render, "]}");
}

/** What became of a plant, in one byte. From `refused` on: an index of `#refusals`. */
const created = 0;
const replayed = 1;
const taken = 2;
const refused = 3;

/** A response may stay unread for long, so results are kept small and rendered as they are sent. */
export class BulkResults {
  readonly #states: Uint8Array;
  /** Of the plants that were created, or whose id was taken. */
  readonly #ids: BigInt64Array;
  readonly #refusals: PlantStoreError[] = [];

  constructor(count: number) {
    this.#states = new Uint8Array(count);
    this.#ids = new BigInt64Array(count);
  }

  readonly note = (index: number, { id }: PlantDraft, outcome: Outcome): void => {
    if (outcome.kind === "created") {
      this.#states[index] = outcome.replayed ? replayed : created;
      this.#ids[index] = outcome.id;
    } else if (outcome.kind === "taken" && id !== undefined) {
      this.#states[index] = taken;
      this.#ids[index] = id;
    } else {
      this.#states[index] = refused + this.#indexOf(refusalOf(outcome, id));
    }
  };

  /** Refusals for the same reason are one: there are only a few reasons. */
  #indexOf(refusal: PlantStoreError): number {
    const found = this.#refusals.findIndex(({ message }) => message === refusal.message);
    return found < 0 ? this.#refusals.push(refusal) - 1 : found;
  }

  render(): string | Source<string> {
    return renderResults("[", this.#states.length, (index) => this.#renderResult(index), "]");
  }

  #renderResult(index: number): string {
    const state = this.#states[index] as number;
    const id = this.#ids[index];
    switch (state) {
      case created:
        return `{"status":201,"id":${id}}`;
      case replayed:
        return `{"status":201,"id":${id},"replayed":true}`;
      case taken:
        return renderRefusal(refusalOf({ kind: "taken" }, id));
      default:
        return renderRefusal(this.#refusals[state - refused] as PlantStoreError);
    }
  }
}

/** In chunks, as they are sent; whole if there are few. */
function renderResults(
  opening: string,
  count: number,
  render: (index: number) => string,
  closing: string,
): string | Source<string> {
  let index = 0;
  let isDone = false;
  const renderNext = (): string | undefined => {
    if (isDone) return undefined;
    let text = index === 0 ? opening : "";
    while (text.length < chunkCharacters && index < count) {
      text += `${index === 0 ? "" : ","}${render(index++)}`;
    }
    isDone = index === count;
    return isDone ? text + closing : text;
  };
  if (count >= streamedResultsMin) return { next: async () => renderNext(), close() {} };
  return renderNext() ?? "";
}

function renderRefusal({ code, message: detail }: PlantStoreError): string {
  return JSON.stringify({ status: problemInfo[code].status, code, detail });
}
