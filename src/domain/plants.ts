/** What callers can do with plants; `rules.ts` decides the writes. It knows nothing of HTTP or SQL. */
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import { toKeyUse } from "./idempotency.ts";
import {
  type PlantQuery,
  type PlantScan,
  type Scan,
  scanMatches,
  scanPlants,
  scanTags,
  type TagCount,
} from "./lists.ts";
import {
  type ContentHashes,
  countCharacters,
  hasOneOf,
  type Plant,
  type PlantChange,
  type PlantContent,
  type PlantDraft,
  type PlantId,
  plantIdMin,
  withId,
} from "./plant.ts";
import type {
  CreateWrite,
  Outcome,
  PlantReader,
  Preconditions,
  Write,
  WriteQueue,
} from "./ports.ts";
import { createMatcher } from "./search.ts";

export interface Created extends Plant {
  /** An earlier request with the same idempotency key had created the plant. */
  readonly replayed: boolean;
}

export interface Put extends Plant {
  /** There was no plant with this id before. */
  readonly isNew: boolean;
}

/**
 * A slice is the part of a bulk that goes into one commit: small enough that others' writes get in
 * between, and a multiple of the plants that share a row of keys, so that each row is stored once.
 * Plants with long names take longer to store, so a slice has fewer of them.
 */
export const slicePlantsMax = 256;
export const sliceCharactersMax = 16 * 1024;

export class Plants {
  constructor(
    private readonly reader: PlantReader,
    private readonly queue: WriteQueue,
    private readonly nowMs: () => number = Date.now,
  ) {}

  /**
   * Fails with `conflict` if the id is taken, `idempotency-mismatch` if the key was used otherwise,
   * `storage-full` if the garden is full.
   */
  async create(caller: Caller, draft: PlantDraft, idempotencyKey?: string): Promise<Created> {
    const outcome = await this.queue.write(this.#toWrite(caller, draft, idempotencyKey));
    if (outcome.kind !== "created") throw refusalOf(outcome, draft.id);
    return { ...withId(outcome.id, draft), replayed: outcome.replayed };
  }

  /** Creates plants independently of each other, and reports each outcome. See `#writeMany`. */
  createMany(
    caller: Caller,
    drafts: readonly PlantDraft[],
    idempotencyKey: string | undefined,
    onOutcome: (index: number, draft: PlantDraft, outcome: Outcome) => void,
  ): Promise<void> {
    const advice =
      idempotencyKey === undefined
        ? "Look before you send it again: without an Idempotency-Key, they would be stored twice."
        : "Send it again with the same Idempotency-Key.";
    const toWrite = (draft: PlantDraft, index: number) =>
      this.#toWrite(caller, draft, idempotencyKey, index);
    return this.#writeMany(drafts, toWrite, onOutcome, { verb: "stored", advice });
  }

  /** Fails with `not-found`, or with `precondition-failed` if the plant isn't as expected. */
  async get({ garden }: Caller, id: PlantId, ifMatch?: ContentHashes): Promise<Plant> {
    const after = id === plantIdMin ? undefined : id - 1n;
    const [plant] = await this.reader.list(garden, after, 1);
    if (plant?.id !== id) throw noSuchPlant();
    if (ifMatch !== undefined && !hasOneOf(ifMatch, plant)) throw preconditionFailed();
    return plant;
  }

  /** The plants of the caller's garden, by id. */
  list({ garden }: Caller, { search, ...query }: PlantQuery): PlantScan {
    const plants = scanPlants(this.reader, garden, query);
    return search === undefined ? plants : scanMatches(plants, createMatcher(search));
  }

  /** The tags of the caller's garden, after a tag. */
  tags({ garden }: Caller, after: string | undefined): Scan<TagCount, string> {
    return scanTags(this.reader, garden, after);
  }

  /** How many plants the caller's garden holds now. */
  count({ garden }: Caller): Promise<number> {
    return this.reader.countPlants(garden);
  }

  /**
   * Replaces the plant with this id, or creates it. Fails with `precondition-failed` if a
   * precondition doesn't hold, `storage-full` if it would be one plant too many.
   */
  async put(
    caller: Caller,
    id: PlantId,
    content: PlantContent,
    preconditions?: Preconditions,
  ): Promise<Put> {
    const plant = withId(id, content);
    const put = { kind: "put", ...this.#writeBase(caller), ...plant, preconditions } as const;
    const outcome = await this.queue.write(put);
    if (outcome.kind === "precondition-failed") throw preconditionFailed();
    if (outcome.kind === "full") throw toFullError(outcome);
    return { ...plant, isNew: outcome.kind === "created" };
  }

  /** Fails with `not-found`, or with `precondition-failed` if the plant isn't as expected. */
  async patch(
    caller: Caller,
    id: PlantId,
    change: PlantChange,
    preconditions?: Preconditions,
  ): Promise<Plant> {
    const base = this.#writeBase(caller);
    const outcome = await this.queue.write({ kind: "patch", ...base, id, change, preconditions });
    if (outcome.kind === "patched") return { id, ...outcome.content };
    throw outcome.kind === "missing" ? noSuchPlant() : preconditionFailed();
  }

  /** Fails with `not-found`, or with `precondition-failed` if the plant isn't as expected. */
  async delete(caller: Caller, id: PlantId, preconditions?: Preconditions): Promise<void> {
    const base = this.#writeBase(caller);
    const outcome = await this.queue.write({ kind: "delete", ...base, id, preconditions });
    if (outcome.kind === "missing") throw noSuchPlant();
    if (outcome.kind === "precondition-failed") throw preconditionFailed();
  }

  /** Returns the ids that the garden has no plant for. See `#writeMany`. */
  deleteMany(caller: Caller, ids: readonly PlantId[]): Promise<PlantId[]> {
    const base = this.#writeBase(caller);
    const toWrite = (id: PlantId) => ({ kind: "delete", ...base, id }) as const;
    return this.#findMissing(ids, toWrite, "deleted");
  }

  /** Returns the ids that the garden has no plant for. See `#writeMany`. */
  patchMany(caller: Caller, ids: readonly PlantId[], change: PlantChange): Promise<PlantId[]> {
    const base = this.#writeBase(caller);
    const toWrite = (id: PlantId) => ({ kind: "patch", ...base, id, change }) as const;
    return this.#findMissing(ids, toWrite, "updated");
  }

  async #findMissing(
    ids: readonly PlantId[],
    toWrite: (id: PlantId) => Write,
    verb: "deleted" | "updated",
  ): Promise<PlantId[]> {
    const missing: PlantId[] = [];
    const note = (_: number, id: PlantId, outcome: Outcome) => {
      if (outcome.kind === "missing") missing.push(id);
    };
    await this.#writeMany(ids, toWrite, note, { verb, advice: "Send it again: that is safe." });
    return missing;
  }

  /**
   * Commits one write for each item, in their order, slice by slice. Fails only if the storage
   * does. Earlier slices are committed then, which the error says.
   */
  async #writeMany<Item>(
    items: readonly Item[],
    toWrite: (item: Item, index: number) => Write,
    onOutcome: (index: number, item: Item, outcome: Outcome) => void,
    words: PartialFailureWords,
  ): Promise<void> {
    let hasChanged = false;
    for (let start = 0, end = 0; start < items.length; start = end) {
      const slice: Write[] = [];
      for (let characters = 0; end < items.length && takesMore(slice, characters); end++) {
        const write = toWrite(items[end] as Item, end);
        characters += storedCharacters(write);
        slice.push(write);
      }
      const outcomes = await this.queue.writeAll(slice, start > 0).catch((error) => {
        throw hasChanged ? toPartialFailure(error, words) : error;
      });
      for (const [offset, outcome] of outcomes.entries()) {
        hasChanged ||= isChange(outcome);
        onOutcome(start + offset, items[start + offset] as Item, outcome);
      }
    }
  }

  #toWrite(
    caller: Caller,
    draft: PlantDraft,
    key: string | undefined,
    index?: number,
  ): CreateWrite {
    const { garden, user, atMs } = this.#writeBase(caller);
    const use = key === undefined ? undefined : toKeyUse(key, index, draft, atMs);
    const { id, name, tag } = draft;
    return { kind: "create", garden, user, atMs, id, name, tag, key: use };
  }

  #writeBase({ garden, user }: Caller) {
    return { garden, user, atMs: this.nowMs() };
  }
}

function noSuchPlant(): PlantStoreError {
  return new PlantStoreError("not-found", "There is no such plant in your garden.");
}

function preconditionFailed(): PlantStoreError {
  const message = "The plant is not as the precondition expects. Nothing was changed.";
  return new PlantStoreError("precondition-failed", message);
}

function takesMore(slice: readonly Write[], characters: number): boolean {
  return slice.length < slicePlantsMax && characters < sliceCharactersMax;
}

function isChange(outcome: Outcome): boolean {
  if (outcome.kind === "created") return !outcome.replayed;
  return outcome.kind === "deleted" || outcome.kind === "patched";
}

/** How many characters the write stores. */
export function storedCharacters(write: Write): number {
  if (write.kind === "delete") return 0;
  if (write.kind === "patch") return Object.values(write.change).join("").length;
  return countCharacters(write);
}

/** What a bulk that failed midway says of the slices before. */
interface PartialFailureWords {
  readonly verb: "stored" | "deleted" | "updated";
  readonly advice: string;
}

/** An error that says "nothing was changed" must not reach the client: earlier slices were. */
function toPartialFailure(cause: unknown, { verb, advice }: PartialFailureWords): PlantStoreError {
  const message = `This request failed midway. Some of the plants may have been ${verb}.`;
  return new PlantStoreError("unavailable", `${message} ${advice}`, { cause });
}

/** Why a create was refused. `id` is the client's. */
export function refusalOf(outcome: Outcome, id: PlantId | undefined): PlantStoreError {
  switch (outcome.kind) {
    case "taken":
      return new PlantStoreError("conflict", `A plant with the id ${id} already exists.`);
    case "exhausted":
      return new PlantStoreError("conflict", "No id is left to assign. Send one with the plant.");
    case "full":
      return toFullError(outcome);
    case "mismatch":
      return new PlantStoreError(
        "idempotency-mismatch",
        "This Idempotency-Key was used for another plant. Use a new key for a new plant.",
      );
    default:
      throw new Error(`A create ended as ${outcome.kind}.`);
  }
}

function toFullError({ limit, max }: { limit: "plants" | "keys"; max: number }): PlantStoreError {
  const message =
    limit === "plants"
      ? `The garden has reached its limit of ${max} plants. Delete some to make room.`
      : `The garden has reached its limit of ${max} idempotency keys. Retry without an ` +
        "Idempotency-Key, or wait: keys are forgotten after 24 hours.";
  return new PlantStoreError("storage-full", message, { limit });
}
