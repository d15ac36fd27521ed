/** The typed client, extended by what this page needs: search by id, safe edits, recent events. */
import {
  type EventPage,
  type ListOptions,
  type Me,
  type Page,
  type Plant,
  type PlantEvent,
  type PlantField,
  PlantStore,
  type PlantStoreOptions,
  PlantStoreProblem,
  PlantStoreUnreachable,
  type StoredPlant,
  type TagCount,
} from "../client/plant-store.ts";
import { describeErrors, hasCode, isRefused } from "../client/problem-error.ts";

export { makeIdempotencyKey } from "../client/plant-store.ts";
export type { Me, Page, Plant, PlantEvent, PlantField, TagCount };
export { hasCode, isRefused };

/** Which plants a list has, and in which order. `q` may be an id, too. */
export type Query = Pick<ListOptions, "tag" | "q" | "order">;
/** Which part of a list to read. */
export type Part = Pick<ListOptions, "after" | "limit" | "signal">;

/** What the page knows about a garden besides its plants. */
export interface Summary {
  readonly me: Me;
  /** Every tag, unless there are more than `tagsMax`. */
  readonly tags: readonly TagCount[];
}

/** Plants per page while somebody scrolls. */
export const pageSize = 500;
/** Plants per page for a selection or an export. */
export const pageSizeMax = 1_000;
export const tagsMax = 5_000;
/** For a request with its retries: while somebody waits for it, and during an import. */
const deadlineMs = 30_000;
const patientDeadlineMs = 180_000;
/** How long after a response the page may take to read it. */
const readMs = 50;
/** How long after a response the list may take to show what the page wrote. */
const writtenMs = 500;

const fields: Record<PlantField, true> = { name: true, tag: true };
export const editedFields = Object.keys(fields) as PlantField[];

/** Somebody else changed the plant, or deleted it if `theirs` is absent. */
export class Conflict extends Error {
  constructor(readonly theirs: StoredPlant | undefined) {
    super("Somebody else was faster.");
  }
}

export interface ApiOptions extends Pick<PlantStoreOptions, "url" | "fetch" | "token"> {
  /** Called after every try: whether the service was reached. */
  readonly onContact?: (isReached: boolean) => void;
}

export class Api extends PlantStore {
  /** For work that goes on after a restart of the service, and as slowly as a rate limit asks for. */
  readonly patient: PlantStore;
  readonly #writes: { sending: number; running: number };

  constructor({ fetch: send = (...request) => fetch(...request), onContact, ...rest }: ApiOptions) {
    const writes = { sending: 0, running: 0 };
    const options: PlantStoreOptions = {
      ...rest,
      async fetch(target, init) {
        const isWrite = init.method !== "GET";
        if (isWrite) {
          writes.sending++;
          writes.running++;
        }
        try {
          const response = await send(target, init);
          onContact?.(!isGatewayError(response));
          return response;
        } catch (error) {
          if (!init.signal?.aborted) onContact?.(false);
          throw error;
        } finally {
          if (isWrite) {
            setTimeout(() => writes.sending--, readMs);
            setTimeout(() => writes.running--, writtenMs);
          }
        }
      },
    };
    // Somebody is waiting: few retries, and no long waits for a rate limit.
    super({ ...options, retries: 2, limitedRetries: 4, retryAfterMsMax: 15_000, deadlineMs });
    this.patient = new PlantStore({
      ...options,
      limitedRetries: Number.POSITIVE_INFINITY,
      deadlineMs: patientDeadlineMs,
    });
    this.#writes = writes;
  }

  /** Whether the page doesn't know yet what became of a write. */
  get isSending(): boolean {
    return this.#writes.sending > 0;
  }

  /** Whether the list may not show yet what this page wrote. */
  get isWriting(): boolean {
    return this.#writes.running > 0;
  }

  async summarize(): Promise<Summary> {
    const counting = Array.fromAsync(this.tags({ limit: tagsMax }));
    const [me, tags] = await Promise.all([this.me(), counting]);
    return { me, tags };
  }

  /** One page of a list. The first one includes the plant whose id was searched for. */
  async listPage(query: Query, part: Part, isFirst = part.after === undefined): Promise<Page> {
    const id = isFirst ? toId(query.q) : undefined;
    const [page, named] = await Promise.all([
      this.page({ ...query, ...part }),
      id === undefined ? undefined : this.find(id, { signal: part.signal }),
    ]);
    if (!named || (query.tag ?? named.tag) !== named.tag) return page;
    return { ...page, plants: [named, ...page.plants.filter((plant) => plant.id !== id)] };
  }

  /** The whole list, or what comes after an id, a page at a time. */
  async *listPages(query: Query, part: Part = {}): AsyncGenerator<Plant[], void, undefined> {
    const id = toId(query.q);
    let { after } = part;
    for (let isFirst = true; isFirst || after !== undefined; isFirst = false) {
      const page = await this.listPage(query, { limit: pageSizeMax, ...part, after }, isFirst);
      yield isFirst ? page.plants : page.plants.filter((plant) => plant.id !== id);
      after = page.next;
    }
  }

  /**
   * Saves the fields that differ from `base`, and keeps what others change in the other fields.
   * Throws a conflict if somebody else changed the same field, or deleted the plant.
   */
  async save(base: Plant, mine: Plant): Promise<StoredPlant> {
    const changed = editedFields.filter((field) => mine[field] !== base[field]);
    const change = Object.fromEntries(changed.map((field) => [field, mine[field]]));
    const isSafe = (theirs: Plant) =>
      changed.every((field) => [base[field], mine[field]].includes(theirs[field]));
    return this.#write(base, isSafe, (options) => this.update(base.id, change, options));
  }

  /** Deletes the plant if it is still what the page showed. Otherwise throws a conflict. */
  async deleteShown(shown: Plant): Promise<void> {
    const isShown = (theirs: Plant) => isSame(theirs, shown);
    await this.#write(shown, isShown, (options) => this.delete(shown.id, options));
  }

  /** Reads the plant again whenever somebody else was faster than the write. */
  async #write<Result>(
    { id }: Plant,
    isSafe: (theirs: Plant) => boolean,
    write: (options: { ifMatch: string | undefined }) => Promise<Result>,
  ): Promise<Result> {
    for (;;) {
      const theirs = await this.find(id);
      if (!theirs || !isSafe(theirs)) throw new Conflict(theirs);
      try {
        return await write({ ifMatch: theirs.etag || undefined });
      } catch (error) {
        if (!hasCode(error, "precondition-failed") && !hasCode(error, "not-found")) throw error;
      }
    }
  }

  /** The last events before this one, or the last of all, oldest first: up to `limit`. */
  async eventsBefore(seq?: number, limit = 200): Promise<readonly PlantEvent[]> {
    const end = seq ?? ((await this.me()).lastEvent ?? 0) + 1;
    const found: PlantEvent[] = [];
    let after: number | undefined = Math.max(0, end - 1 - limit);
    // A page of long names ends early.
    while (after !== undefined && after < end - 1) {
      const page: EventPage = await this.eventPage({ after, limit }).catch((error) => {
        if (!hasCode(error, "gone")) throw error;
        // The service no longer has that event: start with its oldest, or end where there is a gap.
        return found.length === 0 ? this.eventPage({ limit }) : { events: [], next: undefined };
      });
      found.push(...page.events.filter((event) => event.seq < end));
      after = page.next;
    }
    return found;
  }
}

/** A proxy's, not the service's own, which have the request's id. */
function isGatewayError({ status, headers }: Response): boolean {
  return [502, 503, 504].includes(status) && !headers.has("x-request-id");
}

/** Absent if no plant can have this id. */
export function toId(text = ""): bigint | undefined {
  const id = /^-?\d{1,19}$/.test(text) ? BigInt(text) : undefined;
  return id !== undefined && BigInt.asIntN(64, id) === id ? id : undefined;
}

/** Whether people would call it the same plant. */
export function isSame(a: Plant, b: Plant): boolean {
  return editedFields.every((field) => a[field] === b[field]);
}

/** The service's own refusal. Absent if no response came, or one from a proxy. */
export function toRefusal(error: unknown): PlantStoreProblem | undefined {
  return error instanceof PlantStoreProblem && error.code !== "unexpected" ? error : undefined;
}

export function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

export function describeError(error: unknown): string {
  if (error instanceof PlantStoreUnreachable) return "The service did not respond.";
  if (error instanceof PlantStoreProblem && error.code === "unexpected") {
    return `Something other than the service responded, with status ${error.status}.`;
  }
  if (error instanceof PlantStoreProblem) return capitalize(describeErrors(error, 1));
  return error instanceof Error ? error.message : String(error);
}
