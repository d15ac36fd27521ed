/**
 * Create, list and delete, with their rules. It knows nothing of HTTP, SQL or how writes are
 * grouped.
 */
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import {
  nameCodePointsMax,
  type Plant,
  type PlantDraft,
  type PlantId,
  tagCodePointsMax,
} from "./plant.ts";
import type { Idempotency, PlantReader, PlantWriter } from "./storage.ts";

export interface Created extends Plant {
  /** An earlier request with the same idempotency key had created the plant. */
  readonly replayed: boolean;
}

export interface ListQuery {
  readonly limit?: number | undefined;
  readonly after?: PlantId | undefined;
}

export interface Listing {
  readonly first: readonly Plant[];
  /** The pages after `first`; absent when `first` is all there is to send. */
  readonly rest?: Pages;
  /** The query that goes on where `limit` cut the list short; absent when the list is complete. */
  readonly next?: ListQuery;
}

/** Not an async generator: a suspended one keeps the page that it yielded last. */
export interface Pages {
  /** Absent after the last page. */
  next(): Promise<readonly Plant[] | undefined>;
  /** Call it when no further pages are needed. */
  close(): void;
}

export interface Plants {
  /**
   * Fails with `conflict` if the id is taken, `idempotency-mismatch` if the key was used otherwise,
   * `storage-full` if the garden is full.
   */
  create(caller: Caller, draft: PlantDraft, idempotencyKey?: string): Promise<Created>;
  list(caller: Caller, query: ListQuery): Promise<Listing>;
  /** Fails with `not-found` if the caller's garden holds no such plant. */
  delete(caller: Caller, id: PlantId): Promise<void>;
}

/** A page is read at one moment and sent as one piece: 500 plants, or fewer with long names. */
const pagePlantsMax = 500;
/** A list with a limit up to this is read at one moment if it fits into a page's text. */
const snapshotPlantsMax = 2_000;
/** Of names and tags, in UTF-16 units: 20 to 50 KiB as JSON. */
const pageTextMax = 16 * 1024;
/** A client that reads slowly holds a page in memory, so many such clients get smaller pages. */
const openPagesTextMax = 2 * 1024 * 1024;
const pageTextMin = 2 * 1024;
/** Two units for each code point of a plant. */
const plantTextMax = 2 * (nameCodePointsMax + tagCodePointsMax);
const seekPlantsMax = 10_000;
const keyLifetimeMs = 24 * 60 * 60 * 1000;

export function createPlants(deps: {
  reader: PlantReader;
  writer: PlantWriter;
  nowMs: () => number;
}): Plants {
  const { reader, writer, nowMs } = deps;
  const lists = new Lists(reader);

  return {
    async create(caller, draft, idempotencyKey) {
      const { id, name, tag } = draft;
      const idempotency =
        idempotencyKey === undefined ? undefined : rememberFor(idempotencyKey, draft, nowMs());
      const outcome = await writer.write({
        kind: "create",
        garden: caller.garden,
        id,
        name,
        tag,
        idempotency,
      });
      switch (outcome.kind) {
        case "created":
          return { id: outcome.id, name, tag, replayed: outcome.replayed };
        case "taken":
          throw new PlantStoreError("conflict", `A plant with the id ${id} already exists.`);
        case "exhausted":
          throw new PlantStoreError(
            "conflict",
            "No id is left to assign. Send one with the plant.",
          );
        case "full":
          throw refuseFull(outcome);
        case "mismatch":
          throw new PlantStoreError(
            "idempotency-mismatch",
            "This Idempotency-Key was used for another request. Use a new key for a new plant.",
          );
        default:
          throw new Error(`A create ended as ${outcome.kind}.`);
      }
    },

    async list({ garden }, { limit, after }) {
      if (limit === undefined) return lists.all(garden, after);
      if (limit <= snapshotPlantsMax) return lists.page(garden, after, limit);
      return lists.many(garden, after, limit);
    },

    async delete(caller, id) {
      const outcome = await writer.write({ kind: "delete", garden: caller.garden, id });
      if (outcome.kind === "missing") {
        throw new PlantStoreError("not-found", "There is no such plant in your garden.");
      }
    },
  };
}

function refuseFull({ limit, max }: { limit: "plants" | "keys"; max: number }): PlantStoreError {
  const message =
    limit === "plants"
      ? `The garden may hold ${max} plants, and is full. Delete some to make room.`
      : `The garden may hold ${max} idempotency keys, and does. Retry without an Idempotency-Key, ` +
        "or wait: keys are forgotten after 24 hours.";
  return new PlantStoreError("storage-full", message, { limit });
}

function rememberFor(key: string, draft: PlantDraft, nowMs: number): Idempotency {
  const request = JSON.stringify([draft.id?.toString() ?? null, draft.name, draft.tag]);
  return { key, request, nowMs, expiresAtMs: nowMs + keyLifetimeMs };
}

/** Reads lists page by page, and keeps the pages of all open lists within bounds. */
class Lists {
  readonly #reader: PlantReader;
  #open = 0;

  constructor(reader: PlantReader) {
    this.#reader = reader;
  }

  async all(garden: string, after: PlantId | undefined): Promise<Listing> {
    const { plants: first, isLast } = await this.#read(garden, after, pagePlantsMax);
    return isLast ? { first } : { first, rest: this.#readOn(garden, first.at(-1)?.id) };
  }

  /** One plant more than requested shows whether the limit cut the list short. */
  async page(garden: string, after: PlantId | undefined, limit: number): Promise<Listing> {
    const { plants, isLast } = await this.#read(garden, after, limit + 1);
    if (isLast) return { first: plants };
    // The names are too long for one page.
    if (plants.length <= limit) return this.many(garden, after, limit);
    // A page of 0 would link to itself forever, so its link asks for pages of 1.
    if (limit === 0) return { first: [], next: { limit: 1, after } };
    const first = plants.slice(0, limit);
    return { first, next: { limit, after: first.at(-1)?.id } };
  }

  /**
   * A list with a limit that is longer than a page: the last plant that fits is found first,
   * because `next` goes out in a header, before the plants.
   */
  async many(garden: string, after: PlantId | undefined, limit: number): Promise<Listing> {
    const last = await this.#seekFar(garden, after, limit);
    if (last === undefined) return { first: [] };
    const isCut = (await this.#reader.list(garden, last, 1)).length > 0;
    const rest = this.#readOn(garden, after, { last, count: limit });
    const first = (await rest.next()) ?? [];
    return isCut ? { first, rest, next: { limit, after: last } } : { first, rest };
  }

  /** In steps of a bounded size, so that other requests run in between. */
  async #seekFar(
    garden: string,
    after: PlantId | undefined,
    count: number,
  ): Promise<PlantId | undefined> {
    let last: PlantId | undefined;
    for (let remaining = count; remaining > 0; remaining -= seekPlantsMax) {
      const step = Math.min(remaining, seekPlantsMax);
      const found = await this.#reader.seek(garden, last ?? after, step);
      if (found === undefined) break;
      last = found;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return last;
  }

  /** The pages after a position, up to a last plant or to the end of the garden. */
  #readOn(
    garden: string,
    after: PlantId | undefined,
    bound: { readonly last?: PlantId; readonly count?: number } = {},
  ): Pages {
    const { last, count = Number.POSITIVE_INFINITY } = bound;
    let remaining = count;
    let position = after;
    let isOpen = true;
    this.#open++;
    const close = () => {
      if (isOpen) this.#open--;
      isOpen = false;
    };
    return {
      next: async () => {
        if (!isOpen) return undefined;
        const { plants, isLast } = await this.#read(garden, position, pagePlantsMax);
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
  async #read(garden: string, after: PlantId | undefined, count: number) {
    const share = Math.max(pageTextMin, openPagesTextMax / (this.#open + 1));
    const textMax = Math.min(pageTextMax, share);
    if (count * plantTextMax <= textMax) {
      const plants = await this.#reader.list(garden, after, count);
      return { plants, isLast: plants.length < count };
    }
    const plants = await this.#reader.list(garden, after, count, textMax);
    let text = 0;
    for (const { name, tag } of plants) text += name.length + tag.length;
    return { plants, isLast: plants.length < count && text <= textMax - plantTextMax };
  }
}
