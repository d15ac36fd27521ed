/**
 * What the domain needs of storage. The comments are the contract that every engine keeps and that
 * test/storage/ checks; nothing here knows which engine it is.
 *
 * Every method fails with `unavailable` when the engine cannot be reached or read, and with
 * `storage-full` when there is no room for a write. Any other error is a bug.
 */
import type { MaybePromise } from "../shared/promises.ts";
import type { ContentHashes, Plant, PlantChange, PlantContent, PlantId } from "./plant.ts";
import type { TokenRecord } from "./token.ts";

/** What all writes have: the garden, and for the event, who wrote and when. */
interface WriteBase {
  readonly garden: string;
  readonly user: string;
  readonly atMs: number;
}

export interface CreateWrite extends WriteBase, PlantContent {
  readonly kind: "create";
  /** Absent: the engine assigns one (see `PlantStorage.apply`). */
  readonly id: PlantId | undefined;
  /** Its idempotency key, if it was sent with one. */
  readonly key: KeyUse | undefined;
}

/** How a create uses its key, so that the same request can be sent twice and act once. */
export interface KeyUse {
  /** Where it is remembered: the key of a row, and the number of an entry in it. */
  readonly rowKey: string;
  readonly entry: number;
  readonly isInBulk: boolean;
  readonly requestHash: string;
  readonly nowMs: number;
  readonly expiresAtMs: number;
}

/** Replaces the plant with this id, or creates it. */
export interface PutWrite extends WriteBase, PlantContent {
  readonly kind: "put";
  readonly id: PlantId;
  readonly preconditions?: Preconditions | undefined;
}

/** Changes some fields of the plant with this id. */
export interface PatchWrite extends WriteBase {
  readonly kind: "patch";
  readonly id: PlantId;
  readonly change: PlantChange;
  readonly preconditions?: Preconditions | undefined;
}

export interface DeleteWrite extends WriteBase {
  readonly kind: "delete";
  readonly id: PlantId;
  readonly preconditions?: Preconditions | undefined;
}

export type Write = CreateWrite | PutWrite | PatchWrite | DeleteWrite;

/** What must hold of the plant for the write to happen. Checked in the same step as the write. */
export interface Preconditions {
  /** The plant exists and has one of these contents. */
  readonly ifMatch?: ContentHashes | undefined;
  /** The plant doesn't exist, or has none of these contents. */
  readonly ifNoneMatch?: ContentHashes | undefined;
}

export type Outcome =
  /** The plant is stored; `replayed` when an earlier request with the same key had stored it. */
  | { readonly kind: "created"; readonly id: PlantId; readonly replayed: boolean }
  /** The garden already holds a plant with this id. Nothing changed. */
  | { readonly kind: "taken" }
  /** The garden holds as many plants, or idempotency keys, as it may. Nothing changed. */
  | { readonly kind: "full"; readonly limit: "plants" | "keys"; readonly max: number }
  /** No id was given and the garden has none left to assign. Nothing changed. */
  | { readonly kind: "exhausted" }
  /** The idempotency key was used for another request. Nothing changed. */
  | { readonly kind: "mismatch" }
  /** A put found the plant with this id and replaced it. Where there was none: `created`. */
  | { readonly kind: "replaced" }
  /** A patch found the plant, which now says this. */
  | { readonly kind: "patched"; readonly content: PlantContent }
  | { readonly kind: "deleted" }
  /** A precondition doesn't hold. Nothing changed. */
  | { readonly kind: "precondition-failed" }
  /** The garden holds no plant with this id. Nothing changed. */
  | { readonly kind: "missing" };

export interface PlantReader {
  /**
   * The first `count` plants of the garden after `after` (from the first on, if absent), by id. In
   * descending order, the highest id is the first.
   */
  list(
    garden: string,
    after: PlantId | undefined,
    count: number,
    options?: ListOptions,
  ): MaybePromise<readonly Plant[]>;

  /**
   * Counts `count` plants of the garden from a position on, by tag. Tags are in code point order,
   * and the plants of a tag are in the order of their ids. If fewer are counted, there are no more.
   */
  countByTag(garden: string, from: TagPosition, count: number): Promise<readonly CountedTag[]>;

  /** The exact number of plants in the garden now. Takes the same time for any number. */
  countPlants(garden: string): Promise<number>;
}

export type EventType = "created" | "replaced" | "deleted";

/** With the plant as the write left it, or as it was before it was deleted. */
export interface GardenEvent {
  /** Counts from 1 in each garden, without gaps, in the order in which writes became visible. */
  readonly seq: number;
  readonly type: EventType;
  readonly atMs: number;
  readonly user: string;
  readonly plant: Plant;
}

export interface EventReader {
  /**
   * The first `count` events of the garden after `after`; without it, from the oldest on. Fewer if
   * their names and tags have more than `charactersMax` characters, but at least one. Also the
   * number of the garden's last event, read no later than the events.
   */
  readEvents(
    garden: string,
    after: number | undefined,
    count: number,
    charactersMax: number,
  ): Promise<EventPage>;

  /** The gardens whose last event has changed, each with its number. */
  findNewEvents(lastEvents: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>>;
}

export interface EventPage {
  readonly events: readonly GardenEvent[];
  readonly lastEvent: number;
}

export interface ListOptions {
  /**
   * Stop before the names and tags have more characters than this, as the engine counts them (code
   * points or UTF-16 units), but return at least one plant.
   */
  readonly charactersMax?: number | undefined;
  /** Only plants with exactly this tag. */
  readonly tag?: string | undefined;
  /** Ascending unless given. */
  readonly order?: Order | undefined;
}

export type Order = "asc" | "desc";

interface TagPosition {
  readonly tag: string;
  readonly id: PlantId;
}

/** How many of the counted plants have this tag, and which of them is the last. */
export interface CountedTag {
  readonly tag: string;
  readonly plants: number;
  readonly lastId: PlantId;
}

/** Where writes wait for their commit. Resolves once they are on stable storage. */
export interface WriteQueue {
  write(write: Write): Promise<Outcome>;
  /**
   * Applies the writes of one garden in their order, all or none, as `PlantStorage.apply` does. If
   * they continue a request that has begun, they aren't refused for being late. (They are if their
   * garden is held for too long, or a commit is stuck.)
   */
  writeAll(writes: readonly Write[], isContinued?: boolean): Promise<readonly Outcome[]>;
}

export interface PlantStorage extends PlantReader, EventReader {
  /**
   * Applies the writes in their order, in one transaction, and resolves once all of it is on stable
   * storage, with one outcome for each write. If it rejects, nothing was applied, except that after
   * `unavailable` the outcome may be unknown. Applying a create again with the same key settles it.
   *
   * If another process holds one of the gardens, it waits for a moment, then fails with
   * `unavailable`.
   *
   * An assigned id is one more than the highest id from 1 to `assignedIdMax` that the garden ever
   * assigned or was given, so later plants are higher, even after deletions. Once `assignedIdMax`
   * itself was used, there is none left.
   *
   * With a quota, nothing adds to a garden that holds as many plants as it may, whichever process
   * added them, nor a key to one that holds ten times as many keys, and at least 10,000. A key that
   * was used, a precondition and an id that is taken are checked before that.
   *
   * An idempotency key is remembered only with a plant that was created, in the same transaction,
   * and only as a hash, like the request: the id, name and tag that were sent.
   *
   * Every change to a plant is an event of its garden, stored in the same transaction, unless the
   * storage was opened without events. Events are numbered in the order of their writes, from 1 in
   * each garden, even if they aren't stored.
   */
  apply(writes: readonly Write[]): Promise<readonly Outcome[]>;

  /** Absent if other processes can't hold gardens. */
  readonly contended?: ContendedStorage;

  /**
   * Differs after any change in the garden. Read it before you read plants: they are current as
   * long as it stays the same. It counts every `apply` that has returned in this process at once,
   * and other processes' writes within a second. Undefined while a commit that may change the
   * garden is under way, and on engines where reading it costs as much as reading plants.
   */
  version(garden: string): number | undefined;

  /** Forgets a bounded number of expired idempotency keys. Returns whether more may be left. */
  forgetKeys(nowMs: number): Promise<boolean>;

  /**
   * Forgets old events of a bounded number of gardens, those after `after` by name: events from
   * before `beforeMs` and, with a quota, all but as many as the garden may have keys. Uses small
   * transactions. Returns the name of the last of these gardens; absent if there are no more.
   */
  forgetEvents(beforeMs: number, after: string): Promise<string | undefined>;
}

/** Like `PlantStorage.apply`, for gardens that another process may be holding for a commit. */
export interface ContendedStorage {
  /** How many calls of `applyBefore` may run at the same time. */
  readonly waitsMax: number;

  /** Doesn't wait for held gardens: the outcomes of their writes are undefined. */
  applyUnlessHeld(writes: readonly Write[]): Promise<readonly (Outcome | undefined)[]>;

  /**
   * All writes are of one garden. Waits for it until this time, by `performance.now()`, but a second
   * at most. If it's still held then, the outcomes are undefined.
   */
  applyBefore(writes: readonly Write[], untilMs: number): Promise<readonly (Outcome | undefined)[]>;
}

export interface TokenUse {
  readonly id: string;
  readonly usedAtMs: number;
}

export interface TokenStorage {
  findToken(hash: string): Promise<TokenRecord | undefined>;

  /** Every token ever made, the oldest first. */
  listTokens(): Promise<readonly TokenRecord[]>;

  addToken(token: TokenRecord): Promise<void>;

  /** Whether there was an unrevoked token with this id. */
  revokeToken(id: string, nowMs: number): Promise<boolean>;

  /** Different after every `addToken` and `revokeToken`, by any process; 0 before the first. */
  countTokenChanges(): Promise<number>;

  /** Notes when tokens were last used. Never moves a time back, and is not a token change. */
  noteTokenUses(uses: readonly TokenUse[]): Promise<void>;
}
