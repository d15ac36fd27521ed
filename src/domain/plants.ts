/**
 * Create, list and delete, with their rules. It knows nothing of HTTP, SQL or how writes are
 * grouped.
 */
import type { Caller } from "./caller.ts";
import { PlantStoreError } from "./errors.ts";
import type { Plant, PlantDraft, PlantId } from "./plant.ts";
import type { Idempotency, PlantReader, PlantWriter } from "./storage.ts";

export interface Created {
  readonly id: PlantId;
  readonly name: string;
  readonly tag: string;
  /** An earlier request with the same idempotency key had created the plant. */
  readonly replayed: boolean;
}

export interface ListQuery {
  readonly limit?: number | undefined;
  readonly after?: PlantId | undefined;
}

export interface Listing {
  readonly first: readonly Plant[];
  /** What comes behind `first`, page by page; absent when `first` is all there is to send. */
  readonly rest?: AsyncIterable<readonly Plant[]>;
  /** The query that goes on where `limit` cut the list short; absent when the list is complete. */
  readonly next?: ListQuery;
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

/** A page is read in one go, so its size bounds memory and how long a read holds others up. */
const pagePlantsMax = 500;
/**
 * Up to this limit a list is read in one go and shows one moment, whatever is written meanwhile.
 */
const snapshotPlantsMax = 2_000;
const seekPlantsMax = 10_000;
const keyLifetimeMs = 24 * 60 * 60 * 1000;

export function createPlants(deps: {
  reader: PlantReader;
  writer: PlantWriter;
  nowMs: () => number;
}): Plants {
  const { reader, writer, nowMs } = deps;

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
          throw new PlantStoreError(
            "storage-full",
            `The garden may hold ${outcome.plantsMax} plants, and is full. Delete some to make room.`,
            { limit: "plants" },
          );
        case "mismatch":
          throw new PlantStoreError(
            "idempotency-mismatch",
            "This Idempotency-Key was used for another request. Use a new key for a new plant.",
          );
        case "damaged":
          throw new PlantStoreError(
            "unavailable",
            "The storage is damaged, so this cannot be stored. Nothing was changed.",
          );
        default:
          throw new Error(`A create ended as ${outcome.kind}.`);
      }
    },

    async list(caller, query) {
      const { limit, after } = query;
      if (limit === undefined) return listAll(reader, caller.garden, after);
      if (limit <= snapshotPlantsMax) return listPage(reader, caller.garden, after, limit);
      return listMany(reader, caller.garden, after, limit);
    },

    async delete(caller, id) {
      const outcome = await writer.write({ kind: "delete", garden: caller.garden, id });
      if (outcome.kind === "missing") {
        throw new PlantStoreError("not-found", "There is no such plant in your garden.");
      }
    },
  };
}

function rememberFor(key: string, draft: PlantDraft, nowMs: number): Idempotency {
  const request = JSON.stringify([draft.id?.toString() ?? null, draft.name, draft.tag]);
  return { key, request, nowMs, expiresAtMs: nowMs + keyLifetimeMs };
}

/** One plant more than asked for tells whether the limit cut the list short. */
async function listPage(
  reader: PlantReader,
  garden: string,
  after: PlantId | undefined,
  limit: number,
): Promise<Listing> {
  const plants = await reader.list(garden, after, limit + 1);
  if (plants.length <= limit) return { first: plants };
  // A page of 0 would lead to itself for ever, so the way on from it asks for pages of 1.
  if (limit === 0) return { first: [], next: { limit: 1, after } };
  const first = plants.slice(0, limit);
  return { first, next: { limit, after: first.at(-1)?.id } };
}

async function listAll(
  reader: PlantReader,
  garden: string,
  after: PlantId | undefined,
): Promise<Listing> {
  const pages = readPages(reader, garden, after);
  const first = (await pages.next()).value ?? [];
  return first.length < pagePlantsMax ? { first } : { first, rest: pages };
}

/**
 * A limit that is too large for one go: the last plant that fits is found first, because `next`
 * goes out in a header, before the plants. With 9,000 plants and a limit of 2,200, say: `last` is
 * the 2,200th, `next` starts behind it, and four pages of 500 and one of 200 go out.
 */
async function listMany(
  reader: PlantReader,
  garden: string,
  after: PlantId | undefined,
  limit: number,
): Promise<Listing> {
  const last = await seekFar(reader, garden, after, limit);
  const pages = readPages(reader, garden, after, { last, limit });
  const first = (await pages.next()).value ?? [];
  const isCut = last !== undefined && (await reader.list(garden, last, 1)).length > 0;
  return isCut ? { first, rest: pages, next: { limit, after: last } } : { first, rest: pages };
}

/**
 * The last of the first `count` plants, in steps of a bounded size, so that a far seek lets other
 * requests through in between.
 */
async function seekFar(
  reader: PlantReader,
  garden: string,
  after: PlantId | undefined,
  count: number,
): Promise<PlantId | undefined> {
  let last: PlantId | undefined;
  for (let remaining = count; remaining > 0; remaining -= seekPlantsMax) {
    const step = Math.min(remaining, seekPlantsMax);
    const found = await reader.seek(garden, last ?? after, step);
    if (found === undefined) break;
    last = found;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return last;
}

/** Plants up to `last`, or to the end of the garden where there is no such bound. */
async function* readPages(
  reader: PlantReader,
  garden: string,
  after: PlantId | undefined,
  bound: { last: PlantId | undefined; limit: number } = {
    last: undefined,
    limit: Number.POSITIVE_INFINITY,
  },
): AsyncGenerator<readonly Plant[], undefined> {
  const { last } = bound;
  let position = after;
  let remaining = bound.limit;
  for (;;) {
    const read = await reader.list(garden, position, pagePlantsMax);
    const page = last === undefined ? read : read.filter((plant) => plant.id <= last);
    remaining -= page.length;
    if (remaining < 0) {
      // Plants came in before `last` while the list went out. To send them would break the limit
      // and to drop others would break `next`, so the list ends as broken and the client asks
      // again.
      throw new PlantStoreError("unavailable", "The garden changed while it was listed.");
    }
    yield page;
    if (page.length < pagePlantsMax) return;
    position = page.at(-1)?.id;
  }
}
