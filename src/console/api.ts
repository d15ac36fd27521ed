/** The service that this page came from, through the typed client. */
import {
  type CreateResult,
  type Me,
  type Page,
  type Plant,
  type PlantDraft,
  type PlantEvent,
  PlantStore,
  PlantStoreProblem,
  PlantStoreUnreachable,
  type StoredPlant,
  type TagCount,
} from "../client/plant-store.ts";

export { makeIdempotencyKey } from "../client/plant-store.ts";
export type { CreateResult, Me, Page, Plant, PlantDraft, PlantEvent, StoredPlant, TagCount };

export type Api = ReturnType<typeof connect>;

/** What the parts of the page have in common. */
export interface Host {
  readonly api: () => Api;
  /** True if the page has handled the error, and the part need not show it. */
  readonly onError: (error: unknown) => boolean;
}

/** Which plants a list has, and in which order. */
export interface Query {
  readonly tag?: string | undefined;
  /** Words that a plant has in its name or tag. */
  readonly q?: string | undefined;
  /** By id; ascending if absent. */
  readonly order?: "desc" | undefined;
}

/** What is known of a garden besides its plants. */
export interface Summary {
  readonly me: Me;
  /** Every tag, unless there are more than `tagsMax`. */
  readonly tags: readonly TagCount[];
}

/** For people who scroll. */
export const pageSize = 500;
/** For a selection or an export. */
export const pageSizeMax = 5_000;
export const tagsMax = 5_000;
/** How many events are read at a time. */
const eventsMax = 200;
/** How long after a response the page may take to show what was written. */
const writtenMs = 500;

export const editedFields = ["name", "tag"] as const;
type EditedField = (typeof editedFields)[number];

/** Somebody else has changed the plant; absent: deleted it. */
export class Conflict extends Error {
  constructor(readonly theirs: StoredPlant | undefined) {
    super("Somebody else was faster.");
  }
}

interface PagesOptions {
  readonly stop?: AbortSignal;
  readonly after?: bigint | undefined;
  readonly size?: number;
}

export function connect(token: string, signal: AbortSignal) {
  const url = new URL(".", document.baseURI).href;
  // Somebody is waiting: few retries, and no long waits for a rate limit.
  const retryPolicy = { retries: 2, limitedRetries: 4, retryAfterMsMax: 15_000 };
  let writes = 0;
  let writtenAt = Number.NEGATIVE_INFINITY;
  const store = new PlantStore({
    ...{ url, token, ...retryPolicy },
    async fetch(target, init) {
      if (init.method === "GET") return fetch(target, init);
      writes++;
      try {
        return await fetch(target, init);
      } finally {
        writes--;
        writtenAt = performance.now();
      }
    },
  });

  /** Absent: there is no such plant. */
  async function find(id: bigint, call = { signal }): Promise<StoredPlant | undefined> {
    try {
      return await store.get(id, call);
    } catch (error) {
      if (toRefusal(error)?.code !== "not-found") throw error;
      return undefined;
    }
  }

  async function findNamed({ q, tag }: Query, call: { signal: AbortSignal }) {
    const id = toId(q);
    const plant = id === undefined ? undefined : await find(id, call);
    return tag === undefined || plant?.tag === tag ? plant : undefined;
  }

  /** The last events before this one; absent: the last of all. The oldest comes first. */
  async function eventsBefore(seq?: number): Promise<PlantEvent[]> {
    const end = seq ?? ((await store.me({ signal })).lastEvent ?? 0) + 1;
    const limit = Math.min(eventsMax, end - 1);
    const events: PlantEvent[] = [];
    let after = end - 1 - limit;
    while (after < end - 1) {
      try {
        const page = await store.eventPage({ after: after < 0 ? undefined : after, limit, signal });
        events.push(...page.events);
        after = page.next ?? end;
      } catch (error) {
        if (toRefusal(error)?.code !== "gone" || after < 0) throw error;
        // It's no longer kept. Start with the oldest that is.
        after = -1;
      }
    }
    return events.filter((event) => event.seq < end);
  }

  return {
    find,
    eventsBefore,
    /** The last change of a plant; absent if it's too long ago or can't be read. */
    async lastChange(id: bigint): Promise<PlantEvent | undefined> {
      const events = await eventsBefore().catch(() => []);
      return events.findLast(({ plant }) => plant.id === id);
    },
    events: (after: number, stop: AbortSignal) =>
      store.events({ after, signal: AbortSignal.any([signal, stop]) }),
    /** Whether what this page writes may not be in the list yet. */
    isWriting: () => writes > 0 || performance.now() - writtenAt < writtenMs,
    me: () => store.me({ signal }),
    async summarize(): Promise<Summary> {
      const [me, tags] = await Promise.all([
        store.me({ signal }),
        Array.fromAsync(store.tags({ limit: tagsMax, signal })),
      ]);
      return { me, tags };
    },
    /** Words that are a number find the plant with this id, too. */
    async page(query: Query, after: bigint | undefined, limit: number, stop: AbortSignal) {
      const call = { signal: AbortSignal.any([signal, stop]) };
      const [page, named] = await Promise.all([
        store.page({ ...query, after, limit, ...call }),
        after === undefined ? findNamed(query, call) : undefined,
      ]);
      const others = page.plants.filter(({ id }) => id !== named?.id);
      return named ? { ...page, plants: [...others, named] } : page;
    },
    /** Every plant of a list, or those after an id, a page at a time. */
    async *pages(query: Query, { stop = signal, after, size = pageSizeMax }: PagesOptions = {}) {
      const call = { signal: AbortSignal.any([signal, stop]) };
      const named = await findNamed(query, call);
      let first = named ? [named] : [];
      for await (const page of store.pages({ ...query, after, pageSize: size, ...call })) {
        yield [...first, ...page.filter(({ id }) => id !== named?.id)];
        first = [];
      }
      yield first;
    },
    create: (draft: PlantDraft, idempotencyKey: string) =>
      store.create(draft, { idempotencyKey, signal }),
    /** For an import, which is stopped separately. */
    store,
    /**
     * Saves the fields that differ from `base`, and keeps what others change in the other fields.
     * Throws a conflict if somebody else has changed the same field, or deleted the plant.
     */
    async save(base: Plant, mine: Plant): Promise<StoredPlant> {
      const changed = editedFields.filter((field) => mine[field] !== base[field]);
      try {
        return await store.update(
          base.id,
          (theirs) => {
            const isSafe = (field: EditedField) =>
              [base[field], mine[field]].includes(theirs[field]);
            if (!changed.every(isSafe)) throw new Conflict(theirs);
            return Object.fromEntries(changed.map((field) => [field, mine[field]]));
          },
          { signal },
        );
      } catch (error) {
        if (toRefusal(error)?.code === "not-found") throw new Conflict(undefined);
        throw error;
      }
    },
    /** Deletes the plant if it still is what was shown. Otherwise throws a conflict. */
    async delete(shown: Plant): Promise<void> {
      const stored = await find(shown.id);
      if (!stored || !isSame(stored, shown)) throw new Conflict(stored);
      try {
        await store.delete(shown.id, { ifMatch: stored.etag || undefined, signal });
      } catch (error) {
        const code = toRefusal(error)?.code;
        if (code !== "precondition-failed" && code !== "not-found") throw error;
        throw new Conflict(await find(shown.id));
      }
    },
    /** Resolves to those that were there. */
    async deleteMany(ids: readonly bigint[], stop: AbortSignal = signal): Promise<bigint[]> {
      const results = await store.deleteMany(ids, { signal: AbortSignal.any([signal, stop]) });
      return ids.filter((_, index) => results[index]?.status === 204);
    },
    /** Plants that were deleted, with their ids. */
    restore: (plants: readonly Plant[], idempotencyKey: string) =>
      store.createMany(plants, { idempotencyKey, signal }),
  };
}

/** Whether people would call it the same plant. */
export function isSame(a: Plant, b: Plant): boolean {
  return editedFields.every((field) => a[field] === b[field]);
}

function toId(text = ""): bigint | undefined {
  return /^-?\d{1,18}$/.test(text) ? BigInt(text) : undefined;
}

/** The service's own refusal; absent if nothing came, or something from a proxy. */
export function toRefusal(error: unknown): PlantStoreProblem | undefined {
  return error instanceof PlantStoreProblem && error.code !== "unexpected" ? error : undefined;
}

export function describeError(error: unknown): string {
  if (error instanceof PlantStoreUnreachable) return "The service did not respond.";
  if (error instanceof PlantStoreProblem && error.code === "unexpected") {
    return `Something other than the service responded, with status ${error.status}.`;
  }
  return error instanceof Error ? error.message : String(error);
}
