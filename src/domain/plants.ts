/**
 * What callers can do with plants, and its rules. It knows nothing of HTTP, SQL or how writes are
 * grouped.
 */
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import {
  nameCodePointsMax,
  type Plant,
  type PlantDraft,
  type PlantId,
  plantIdMin,
  tagCodePointsMax,
} from "./plant.ts";
import type { CreateWrite, Outcome, PlantReader, PlantWriter, Preconditions } from "./storage.ts";

export interface Created extends Plant {
  /** An earlier request with the same idempotency key had created the plant. */
  readonly replayed: boolean;
}

export interface Put extends Plant {
  /** There was no plant with this id before. */
  readonly isNew: boolean;
}

export interface ListQuery {
  readonly limit?: number | undefined;
  readonly after?: PlantId | undefined;
  /** Only plants with exactly this tag. */
  readonly tag?: string | undefined;
}

export interface Listing {
  readonly first: readonly Plant[];
  /** The pages after `first`, perhaps none; absent if the list is short and sent whole. */
  readonly rest?: Source<readonly Plant[]> | undefined;
  /** The query that goes on where `limit` cut the list short; absent when the list is complete. */
  readonly next?: ListQuery | undefined;
}

/** An async generator would keep its last item in memory while suspended. */
export interface Source<Item> {
  /** Absent after the last item. */
  next(): Promise<Item | undefined>;
  /** Call it when no further items are needed. */
  close(): void;
}

/** A page is read at one moment and sent as one chunk: 1,000 plants, or fewer with long names. */
const pagePlantsMax = 1_000;
/** A list with a limit up to this is read at one moment if it fits into a page's text. */
const snapshotPlantsMax = 2_000;
/** Of names and tags, in UTF-16 units: 40 to 100 KiB as JSON. */
const pageTextMax = 32 * 1024;
/** A list with more text is a stream even if it is one page, because only streams are counted. */
const wholeTextMax = 16 * 1024;
/** A client that reads slowly holds a page in memory, so many such clients get smaller pages. */
const openPagesTextMax = 2 * 1024 * 1024;
const pageTextMin = 2 * 1024;
/** Two units for each code point of a plant. */
const plantTextMax = 2 * (nameCodePointsMax + tagCodePointsMax);
const seekPlantsMax = 4_000;
const keyLifetimeMs = 24 * 60 * 60 * 1000;
/**
 * How many plants of a bulk go into one commit: few enough that others' writes get in between, and
 * a multiple of the plants that share a row of keys, so that each row is stored once. Plants with
 * long names take longer to store, so fewer of them share a commit.
 */
export const slicePlants = 256;
export const sliceTextMax = 16 * 1024;

export class Plants {
  readonly #reader: PlantReader;
  readonly #writer: PlantWriter;
  readonly #nowMs: () => number;
  readonly #lists: Lists;

  /** `turn` resolves when a garden may go on with long work. */
  constructor(
    reader: PlantReader,
    writer: PlantWriter,
    turn: (garden: string) => Promise<unknown>,
    nowMs: () => number = Date.now,
  ) {
    this.#reader = reader;
    this.#writer = writer;
    this.#nowMs = nowMs;
    this.#lists = new Lists(reader, turn);
  }

  /**
   * Fails with `conflict` if the id is taken, `idempotency-mismatch` if the key was used otherwise,
   * `storage-full` if the garden is full.
   */
  async create(caller: Caller, draft: PlantDraft, idempotencyKey?: string): Promise<Created> {
    const outcome = await this.#writer.write(this.#toWrite(caller, draft, idempotencyKey));
    if (outcome.kind !== "created") throw refusalOf(outcome, draft.id);
    return { id: outcome.id, name: draft.name, tag: draft.tag, replayed: outcome.replayed };
  }

  /**
   * Creates plants in their order, independently of each other, and reports the outcome of each.
   * They are committed slice by slice. Fails only if the storage does: then some of the plants may
   * be stored, and the key settles which.
   */
  async createMany(
    caller: Caller,
    drafts: readonly PlantDraft[],
    idempotencyKey: string | undefined,
    onOutcome: (index: number, draft: PlantDraft, outcome: Outcome) => void,
  ): Promise<void> {
    let hasCreated = false;
    try {
      for (let start = 0, end = 0; start < drafts.length; start = end) {
        end = endOfSlice(drafts, start);
        const slice = drafts.slice(start, end);
        const outcomes = await this.#writer.writeAll(
          slice.map((draft, index) => this.#toWrite(caller, draft, idempotencyKey, start + index)),
        );
        for (const [index, draft] of slice.entries()) {
          const outcome = outcomes[index] as Outcome;
          hasCreated ||= outcome.kind === "created" && !outcome.replayed;
          onOutcome(start + index, draft, outcome);
        }
      }
    } catch (error) {
      throw hasCreated ? toPartialFailure(error, idempotencyKey) : error;
    }
  }

  /** Fails with `not-found` if the caller's garden holds no such plant. */
  async get({ garden }: Caller, id: PlantId): Promise<Plant> {
    const after = id === plantIdMin ? undefined : id - 1n;
    const [plant] = await this.#reader.list(garden, after, 1);
    if (plant?.id !== id) throw noSuchPlant();
    return plant;
  }

  async list({ garden }: Caller, { limit, after, tag }: ListQuery): Promise<Listing> {
    const scope = { garden, tag };
    if (limit === undefined) return this.#lists.all(scope, after);
    return this.#lists.page(scope, after, limit);
  }

  /** How many plants the caller's garden holds now. */
  count({ garden }: Caller): Promise<number> {
    return this.#reader.countPlants(garden);
  }

  /**
   * Replaces the plant with this id, or creates it. Fails with `precondition-failed` if a
   * precondition doesn't hold, `storage-full` if it would be one plant too many.
   */
  async put(
    caller: Caller,
    id: PlantId,
    { name, tag }: Pick<Plant, "name" | "tag">,
    preconditions?: Preconditions,
  ): Promise<Put> {
    const plant = { id, name, tag };
    const put = { kind: "put", ...this.#writeBase(caller), ...plant, preconditions } as const;
    const outcome = await this.#writer.write(put);
    if (outcome.kind === "precondition-failed") throw preconditionFailed();
    if (outcome.kind === "full") throw refuseFull(outcome);
    return { id, name, tag, isNew: outcome.kind === "created" };
  }

  /** Fails with `not-found`, or with `precondition-failed` if the plant isn't as expected. */
  async delete(
    caller: Caller,
    id: PlantId,
    preconditions?: Pick<Preconditions, "ifMatch">,
  ): Promise<void> {
    const base = this.#writeBase(caller);
    const outcome = await this.#writer.write({ kind: "delete", ...base, id, preconditions });
    if (outcome.kind === "missing") throw noSuchPlant();
    if (outcome.kind === "precondition-failed") throw preconditionFailed();
  }

  #toWrite(
    caller: Caller,
    { id, name, tag }: PlantDraft,
    key: string | undefined,
    index?: number,
  ): CreateWrite {
    const base = this.#writeBase(caller);
    const { atMs: nowMs } = base;
    const idempotency =
      key === undefined ? undefined : { key, index, nowMs, expiresAtMs: nowMs + keyLifetimeMs };
    return { kind: "create", ...base, id, name, tag, idempotency };
  }

  #writeBase({ garden, user }: Caller) {
    return { garden, user, atMs: this.#nowMs() };
  }
}

function noSuchPlant(): PlantStoreError {
  return new PlantStoreError("not-found", "There is no such plant in your garden.");
}

export function preconditionFailed(): PlantStoreError {
  const message = "The plant is not as the precondition expects. Nothing was changed.";
  return new PlantStoreError("precondition-failed", message);
}

/** Where the slice that starts at `start` ends. */
function endOfSlice(drafts: readonly PlantDraft[], start: number): number {
  let text = 0;
  let end = start;
  while (end < drafts.length && end - start < slicePlants && text < sliceTextMax) {
    const { name, tag } = drafts[end++] as PlantDraft;
    text += name.length + tag.length;
  }
  return end;
}

/** Whatever the storage says of one slice, others may be stored. */
function toPartialFailure(error: unknown, idempotencyKey: string | undefined): unknown {
  if (!(error instanceof PlantStoreError)) return error;
  const advice =
    idempotencyKey === undefined
      ? "Look before you send it again: without an Idempotency-Key, they would be stored twice."
      : "Send it again with the same Idempotency-Key.";
  const message = `The database failed during this request. Some of the plants may have been stored. ${advice}`;
  return new PlantStoreError("unavailable", message, { cause: error });
}

/** Why a create was refused. `id` is the client's. */
export function refusalOf(outcome: Outcome, id: PlantId | undefined): PlantStoreError {
  switch (outcome.kind) {
    case "taken":
      return new PlantStoreError("conflict", `A plant with the id ${id} already exists.`);
    case "exhausted":
      return new PlantStoreError("conflict", "No id is left to assign. Send one with the plant.");
    case "full":
      return refuseFull(outcome);
    case "mismatch":
      return new PlantStoreError(
        "idempotency-mismatch",
        "This Idempotency-Key was used for another plant. Use a new key for a new plant.",
      );
    default:
      throw new Error(`A create ended as ${outcome.kind}.`);
  }
}

function refuseFull({ limit, max }: { limit: "plants" | "keys"; max: number }): PlantStoreError {
  const message =
    limit === "plants"
      ? `The garden may hold ${max} plants, and is full. Delete some to make room.`
      : `The garden may hold ${max} idempotency keys, and does. Retry without an Idempotency-Key, ` +
        "or wait: keys are forgotten after 24 hours.";
  return new PlantStoreError("storage-full", message, { limit });
}

/** Which plants are listed: all of a garden, or those with a tag. */
interface ListScope {
  readonly garden: string;
  readonly tag: string | undefined;
}

/** Reads lists page by page, and keeps the pages of all open lists within bounds. */
class Lists {
  readonly #reader: PlantReader;
  readonly #turn: (garden: string) => Promise<unknown>;
  #open = 0;

  constructor(reader: PlantReader, turn: (garden: string) => Promise<unknown>) {
    this.#reader = reader;
    this.#turn = turn;
  }

  async all(scope: ListScope, after: PlantId | undefined): Promise<Listing> {
    const page = await this.#read(scope, after, pagePlantsMax);
    if (page.isLast) return this.#onePage(page.plants);
    return { first: page.plants, rest: this.#readOn(scope, page.plants.at(-1)?.id) };
  }

  /** One plant more than requested shows whether the limit cut the list short. */
  async page(scope: ListScope, after: PlantId | undefined, limit: number): Promise<Listing> {
    const count = Math.min(limit, snapshotPlantsMax) + 1;
    const { plants, isLast } = await this.#read(scope, after, count);
    // A page of 0 would link to itself forever, so its link asks for pages of 1.
    if (limit === 0) {
      return { first: [], next: plants.length > 0 ? { limit: 1, after } : undefined };
    }
    if (plants.length > limit) {
      const first = plants.slice(0, limit);
      return this.#onePage(first, { limit, after: first.at(-1)?.id });
    }
    return isLast ? this.#onePage(plants) : this.#continue(scope, plants, limit);
  }

  #onePage(first: readonly Plant[], next?: ListQuery): Listing {
    if (textOf(first) <= wholeTextMax) return { first, next };
    return { first, rest: { next: async () => undefined, close: this.#countOpen() }, next };
  }

  /**
   * The rest of a list with a limit that does not fit into its first page. The last plant within
   * the limit is found first, because `next` goes out in a header, before the plants.
   */
  async #continue(scope: ListScope, first: readonly Plant[], limit: number): Promise<Listing> {
    const position = first.at(-1)?.id;
    const count = limit - first.length;
    const last = (await this.#seekInSteps(scope, position, count)) ?? position;
    const isCut = (await this.#list(scope, last, 1)).length > 0;
    const next = isCut ? { limit, after: last } : undefined;
    if (last === position) return { first, next };
    return { first, rest: this.#readOn(scope, position, { last, count }), next };
  }

  /** In steps of a bounded size, so that other requests run in between. */
  async #seekInSteps(
    scope: ListScope,
    after: PlantId | undefined,
    count: number,
  ): Promise<PlantId | undefined> {
    let last: PlantId | undefined;
    for (let remaining = count; remaining > 0; remaining -= seekPlantsMax) {
      const step = Math.min(remaining, seekPlantsMax);
      const found = await this.#reader.seek(scope.garden, last ?? after, step, scope.tag);
      if (found === undefined) break;
      last = found;
      await this.#turn(scope.garden);
    }
    return last;
  }

  /** The pages after a position, up to a last plant or to the end of the garden. */
  #readOn(
    scope: ListScope,
    after: PlantId | undefined,
    bound: { readonly last?: PlantId | undefined; readonly count?: number } = {},
  ): Source<readonly Plant[]> {
    const { last, count = Number.POSITIVE_INFINITY } = bound;
    let remaining = count;
    let position = after;
    let isOpen = true;
    const countClosed = this.#countOpen();
    const close = () => {
      isOpen = false;
      countClosed();
    };
    return {
      next: async () => {
        if (!isOpen) return undefined;
        const { plants, isLast } = await this.#read(scope, position, pagePlantsMax);
        const page = last === undefined ? plants : plants.filter(({ id }) => id <= last);
        remaining -= page.length;
        if (remaining < 0) {
          // Plants were added before `last` while the list went out. Sending them would exceed the
          // limit, and dropping others would break `next`: the response breaks off, and the client
          // asks again.
          throw new PlantStoreError("unavailable", "The garden changed while it was listed.");
        }
        position = page.at(-1)?.id;
        if (isLast || page.length < plants.length || position === last) close();
        return page;
      },
      close,
    };
  }

  /** Reads a page. `isLast` is true only if the garden surely has no more plants. */
  async #read(scope: ListScope, after: PlantId | undefined, count: number) {
    const share = Math.max(pageTextMin, openPagesTextMax / (this.#open + 1));
    const textMax = Math.min(pageTextMax, share);
    if (count * plantTextMax <= textMax) {
      const plants = await this.#list(scope, after, count);
      return { plants, isLast: plants.length < count };
    }
    const plants = await this.#list(scope, after, count, textMax);
    const isLast = plants.length < count && textOf(plants) <= textMax - plantTextMax;
    return { plants, isLast };
  }

  /** Counts an open list until the function that it returns is called. */
  #countOpen(): () => void {
    let isOpen = true;
    this.#open++;
    return () => {
      if (isOpen) this.#open--;
      isOpen = false;
    };
  }

  #list({ garden, tag }: ListScope, after: PlantId | undefined, count: number, textMax?: number) {
    return this.#reader.list(garden, after, count, { textMax, tag });
  }
}

function textOf(plants: readonly Plant[]): number {
  let text = 0;
  for (const { name, tag } of plants) text += name.length + tag.length;
  return text;
}
