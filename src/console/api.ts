/** The service that this page came from, through the typed client. */
import {
  type Me,
  type Page,
  type Plant,
  type PlantDraft,
  PlantStore,
  PlantStoreProblem,
  PlantStoreUnreachable,
  type StoredPlant,
} from "../client/plant-store.ts";

export { makeIdempotencyKey } from "../client/plant-store.ts";
export type { Me, Page, Plant, PlantDraft, StoredPlant };

export type Api = ReturnType<typeof connect>;

/** What the page needs to show a garden. */
export interface Opening {
  readonly me: Me;
  readonly first: Page;
}

/** For people who scroll. */
const pageSize = 500;
/** For a filter, which needs all plants. */
export const largePageSize = 5_000;

export function connect(token: string, signal: AbortSignal) {
  const url = new URL(".", document.baseURI).href;
  // Somebody is waiting: few retries, and no long waits for a rate limit.
  const retryPolicy = { retries: 2, limitedRetries: 4, retryAfterMsMax: 15_000 };
  const store = new PlantStore({ url, token, ...retryPolicy });
  const page = (after?: bigint, tag?: string, limit = pageSize) =>
    store.page({ limit, after, tag, signal });
  return {
    page,
    async open(): Promise<Opening> {
      const [me, first] = await Promise.all([store.me({ signal }), page()]);
      return { me, first };
    },
    create: (draft: PlantDraft, idempotencyKey: string) =>
      store.create(draft, { idempotencyKey, signal }),
    /** Absent: there is no such plant. */
    async find(id: bigint): Promise<StoredPlant | undefined> {
      try {
        return await store.get(id, { signal });
      } catch (error) {
        if (toRefusal(error)?.code !== "not-found") throw error;
        return undefined;
      }
    },
    /** Replaces the plant if it still is what the ETag stands for. */
    put: ({ id, name, tag }: Plant, ifMatch: string) =>
      store.put(id, { name, tag }, { ifMatch, signal }),
    /** For an import, which is stopped separately. */
    store,
    /** Plants that are already gone are no error. */
    deleteMany: (ids: readonly bigint[], stop: AbortSignal) =>
      store.deleteMany(ids, { signal: AbortSignal.any([signal, stop]) }),
    /** Every plant, or those of a tag, a page at a time. */
    pages: (tag: string | undefined, stop: AbortSignal) =>
      store.pages({ tag, signal: AbortSignal.any([signal, stop]) }),
    delete: (id: bigint) => store.delete(id, { signal }),
  };
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
