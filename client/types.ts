/** What callers pass to the client, and what they get. */
import type { ProblemCode } from "./problem-error.ts";

export interface PlantStoreOptions {
  /** Where the service is, with its base path: `https://plants.example/v1`. */
  readonly url: string;
  /**
   * With or without `Bearer` before it. Missing or empty is an error, to catch unset variables. A
   * function is called before the first request, and again if the service refuses the token (401),
   * for tokens that expire.
   */
  readonly token: string | undefined | (() => string | undefined | Promise<string | undefined>);
  /** Replaces the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /**
   * Default 10, which takes about 20 seconds. Every call is retried; docs/client.md says what a
   * retry can do.
   */
  readonly retries?: number;
  /** Retries after 429, counted separately; as many as `retries` by default. */
  readonly limitedRetries?: number;
  /** The longest `Retry-After` to wait for: 60,000 by default. Beyond it the call fails at once. */
  readonly retryAfterMsMax?: number;
  /** For each try, to the last byte of the response: 30,000 by default. */
  readonly timeoutMs?: number;
  /**
   * For a request with all its retries and the pauses between them. Without one, only `retries` and
   * `timeoutMs` end it. A call that sends many requests has it for each, and a stream has none.
   */
  readonly deadlineMs?: number;
  /** Sent with every request, such as what a gateway asks for. The client's own headers win. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Called with every response, even with those of tries that are repeated. */
  readonly onResponse?: (response: ResponseInfo) => void;
}

export interface ResponseInfo {
  readonly method: string;
  /** With its query. */
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  /** Finds the request in the service's log. Absent if the response is a proxy's own. */
  readonly requestId: string | undefined;
}

/**
 * What a call may override for its own requests. For `events`, `deadlineMs` and `retries` count
 * until the first response; after that, it keeps trying.
 */
export interface CallOptions {
  /** Aborts the call, even while it waits for a retry. */
  readonly signal?: AbortSignal | undefined;
  /** As in `PlantStoreOptions`. */
  readonly timeoutMs?: number | undefined;
  /** As in `PlantStoreOptions`; `Infinity` is none. */
  readonly deadlineMs?: number | undefined;
  /** As in `PlantStoreOptions`. */
  readonly retries?: number | undefined;
}

/** Of calls that may take several requests. */
export interface ManyOptions extends CallOptions {
  /**
   * Aborted: the call sends nothing new. What became of the request under way is found out first: it
   * is waited for, or repeated until a response comes or `signal` is aborted. Unless that was the
   * last one, the call then throws this signal's reason.
   */
  readonly stop?: AbortSignal | undefined;
}

export interface CreateOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters, up to 230 for many plants. By default, a new random key. */
  readonly idempotencyKey?: string | undefined;
}

export interface CreateManyOptions extends CreateOptions, ManyOptions {}

export interface UpdateOptions extends CallOptions {
  /** The `etag` of a plant: only if it still has it. `*`: only if it exists. */
  readonly ifMatch?: string | undefined;
}

export type DeleteOptions = UpdateOptions;

export interface PutOptions extends UpdateOptions {
  /** `*`: only if there is no such plant. */
  readonly ifNoneMatch?: "*" | undefined;
}

export interface ListOptions extends CallOptions {
  /** How many plants in total; all by default. */
  readonly limit?: number | undefined;
  /** An id; the list starts after it. */
  readonly after?: bigint | number | undefined;
  /** Only plants with exactly this tag. */
  readonly tag?: string | undefined;
  /** Only plants that contain each of these words in their name or tag, in any case. */
  readonly q?: string | undefined;
  /** `desc`: by descending id, the newest first. */
  readonly order?: "asc" | "desc" | undefined;
  /** How many plants to fetch at a time, up to 1,000, which is the default. */
  readonly pageSize?: number | undefined;
}

export interface TagsOptions extends CallOptions {
  /** How many tags in total; all by default. */
  readonly limit?: number | undefined;
  /** A tag; the list starts after it. */
  readonly after?: string | undefined;
}

export interface Plant {
  /** Identifies the plant in its garden. Exact over the whole signed 64-bit range. */
  readonly id: bigint;
  readonly name: string;
  /** Empty if the plant has none. */
  readonly tag: string;
}

/** What a plant says, besides its id. */
export type PlantField = Exclude<keyof Plant, "id">;

/** A plant, where all its fields are named; else `never`, so nothing compiles. */
export type Whole<Named extends PlantField> = [PlantField] extends [Named] ? Plant : never;

export interface PlantDraft {
  /** 1 to 200 Unicode code points, not only white space, kept as sent. */
  readonly name: string;
  /** 0 to 100 Unicode code points, kept as sent. Empty if left out. */
  readonly tag?: string | undefined;
  /** Assigned by the service if absent. */
  readonly id?: bigint | number | undefined;
}

export interface CreatedPlant extends StoredPlant {
  /** Whether an earlier request with the same key, or an earlier try, had created the plant. */
  readonly replayed: boolean;
}

export interface StoredPlant extends Plant {
  /** A hash of the name and tag, for `ifMatch`. Empty if a proxy removed it. */
  readonly etag: string;
}

export interface PutPlant extends StoredPlant {
  /** Whether the plant is new. False if a lost response makes that uncertain. */
  readonly created: boolean;
}

/** The fields to change; the others stay. */
export type PlantChange = { readonly [Field in PlantField]?: Plant[Field] | undefined };

/** What became of one of many plants. */
export type CreateResult =
  | { readonly status: 201; readonly id: bigint; readonly replayed: boolean }
  | {
      readonly status: 409 | 422 | 507;
      readonly code: ProblemCode;
      readonly detail: string;
    };

/** What became of one of many changes: 404 if there was no such plant. */
export interface UpdateResult {
  readonly status: 200 | 404;
}

/** What became of one of many deletions: 404 if there was no such plant. */
export type DeleteResult = (Deletion & { readonly status: 204 }) | { readonly status: 404 };

export interface TagCount {
  /** Empty for plants without a tag. */
  readonly tag: string;
  /** How many plants have the tag. */
  readonly plants: number;
}

/** What the token stands for. */
export interface Me {
  readonly user: string;
  readonly garden: string;
  /** `write` includes `read`. */
  readonly scope: "read" | "write";
  /** When the token expires. Absent: never. */
  readonly expiresAt?: string | undefined;
  /** How many plants the garden has now. */
  readonly plants: number;
  /** The `seq` of the garden's last event, 0 before the first. Absent if the service keeps none. */
  readonly lastEvent?: number | undefined;
}

export interface EventsOptions extends CallOptions {
  /** The `seq` of an event; the events after it follow. Absent: what happens from now on. */
  readonly after?: number | undefined;
}

export interface EventPageOptions extends CallOptions {
  /** The `seq` of an event; the page starts after it. Absent: with the oldest that is kept. */
  readonly after?: number | undefined;
  /** 1 to 1,000, which is the default. A page may have fewer events, and still not be the last. */
  readonly limit?: number | undefined;
}

/** A change to a plant. */
export interface PlantEvent {
  /** Counts from 1 in each garden, without gaps. */
  readonly seq: number;
  readonly type: "plant.created" | "plant.replaced" | "plant.deleted";
  readonly at: string;
  /** Who made the change. */
  readonly user: string;
  /** As the change left it, or as it was when it was deleted. */
  readonly plant: Plant;
}

export interface EventPage {
  readonly events: PlantEvent[];
  /** The `seq` that the next page starts after; absent on the last page. */
  readonly next: number | undefined;
}

export interface Page {
  readonly plants: Plant[];
  /** The id that the next page starts after; absent on the last page, and with a limit of 0. */
  readonly next: bigint | undefined;
}

export interface Deletion {
  /**
   * False if a response was lost and the retry found no plant. The plant is deleted, but perhaps
   * not by this call.
   */
  readonly confirmed: boolean;
}
