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
import { exactInteger, itemsOf, memberText } from "../json-text.ts";
import type { ParseContext } from "./operation.ts";
import { problemInfo } from "./problem.ts";
import { oneErrorEach, validateChange, validateObject } from "./request.ts";
import type { Source } from "./stream.ts";

export const bulkPlantsMax = 10_000;
export const bulkBytesMax = 1024 * 1024;
export const idsBytesMax = 256 * 1024;
/** More than any valid plant needs, with each character escaped: 4,096. */
export const plantCharactersMax = 6 * contentCharactersMax + 496;
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
  const tooLong = `must have at most ${plantCharactersMax} characters.`;
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
    await turn();
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

/**
 * The ids of plants to delete, each of them once. Adds what is wrong to `errors`; the ids count
 * only if nothing is. Fails with `too-large` if there are too many, or with `overloaded`.
 */
export function readDeletion(
  text: string,
  errors: ValidationError[],
  context: BulkContext,
): Promise<PlantId[]> {
  validateObject(deletionSchema, text, errors);
  return readIds(text, errors, context);
}

/** The ids of plants to change, as for deleting them, and what to set. */
export async function readUpdate(
  text: string,
  errors: ValidationError[],
  context: BulkContext,
): Promise<{ readonly ids: readonly PlantId[]; readonly set: PlantChange }> {
  validateObject(updateSchema, text, errors);
  const isSet = isReadable("/set", errors);
  const set = isSet ? validateChange(memberText(text, "set"), errors, "/set") : undefined;
  return { ids: await readIds(text, errors, context), set: set ?? {} };
}

/** Whether nothing is wrong so far with the body, or with this member of it. */
function isReadable(member: string, errors: readonly ValidationError[]): boolean {
  return !errors.some((each) => "pointer" in each && ["", member].includes(each.pointer));
}

async function readIds(
  text: string,
  errors: ValidationError[],
  { turn, reserved }: BulkContext,
): Promise<PlantId[]> {
  // As for plants. An id and its comma take at least two characters.
  reserved.add(Math.min(bulkPlantsMax, text.length / 2) * idBytes + streamBytes);
  const ids = new Set<PlantId>();
  if (!isReadable("/ids", errors)) return [];
  const items = itemsOf(memberText(text, "ids"));
  const count = await forEachItem(items, "ids", turnIdsMax, turn, (item, index) => {
    const parsed = v.safeParse(plantIdSchema, exactInteger(item), oneErrorEach);
    if (parsed.success) ids.add(parsed.output);
    else errors.push({ pointer: `/ids/${index}`, detail: `${parsed.issues[0].message}.` });
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
