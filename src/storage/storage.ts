/**
 * What a storage is besides what the domain needs of it (domain/ports.ts): how it is opened, shared
 * and closed.
 */
import { PlantStoreError } from "../domain/errors.ts";
import { type PlantId, plantIdMax, plantIdMin } from "../domain/plant.ts";
import type { Order, PlantStorage, TokenStorage } from "../domain/ports.ts";

export interface Storage extends PlantStorage, TokenStorage, GardenStorage {
  /** Absent where there is no pool of connections. */
  readonly pool?: () => PoolUse;

  /** Resolves if a query can be answered now. */
  ping(): Promise<void>;

  /** How much room it takes, and how much is left. */
  measure(): Promise<StorageSizes>;

  /** What another thread of this process needs to open the same storage. */
  share(): StorageShare;

  /** Finishes work under way, then closes connections and files. */
  close(): Promise<void>;
}

/** For the operator. */
export interface GardenStorage {
  /** By name. */
  listGardens(): Promise<readonly GardenRecord[]>;

  /**
   * Deletes everything in the garden: plants, events and keys. Its row stays, with its counters, so
   * that new ids and event numbers are higher than any before. If it fails midway, the garden's
   * counts are exact; call it again.
   */
  deleteGarden(garden: string): Promise<void>;
}

export interface GardenRecord {
  readonly garden: string;
  readonly plants: number;
  readonly lastEvent: number;
  /** Absent if that event isn't kept. */
  readonly lastEventAtMs: number | undefined;
  /** It holds no plants, events or keys: it was deleted, or emptied some time ago. */
  readonly isEmpty: boolean;
}

/** How a thread's connections are used right now. */
export interface PoolUse {
  readonly connectionsMax: number;
  readonly busy: number;
  readonly idle: number;
  /** Operations that wait for a connection. */
  readonly waiting: number;
}

/** In bytes; absent where the engine can't tell. */
export interface StorageSizes {
  readonly database: number;
  /** The write-ahead log. */
  readonly log?: number;
  /** Of the disk that both are on. */
  readonly diskFree?: number;
  readonly disk?: number;
}

/** For one thread. Only the engine knows what is in it. */
export interface StorageShare {
  /** Post it to the thread, which opens the storage with it as `OpenOptions.share`. */
  readonly state: unknown;
  /** The parts of `state` that must be transferred, not copied. */
  readonly transfer: readonly MessagePort[];
}

/** How a process means to use the storage that it opens. */
export interface OpenOptions {
  /** The process is a service. An engine may allow one at a time. */
  readonly isServing: boolean;
  /** Called when a part of the engine has broken down for good, and the process must not go on. */
  readonly onFailure?: (message: string) => void;
  /**
   * `StorageShare.state`, in another thread of the process that serves the storage. On PostgreSQL,
   * the server may be unreachable just then.
   */
  readonly share?: unknown;
  /** Called after each read of plants that succeeded. */
  readonly onRead?: ((durationMs: number) => void) | undefined;
  /** How many plants a garden may hold. Unlimited if absent. */
  readonly plantsMax?: number | undefined;
  /** Events are counted, but not stored. */
  readonly withoutEvents?: boolean | undefined;
  /** Fails if there is no storage yet, instead of creating one. */
  readonly mustExist?: boolean;
  /** Called if a new store was created; with its name if the engine has schemas. */
  readonly onNewStore?: ((schema?: string) => void) | undefined;
  /** An engine without connections ignores it. */
  readonly limits?: ConnectionLimits;
}

export type WriterOptions = Pick<OpenOptions, "plantsMax" | "withoutEvents">;

/** How much a store holds. */
export interface Contents {
  readonly plants: number;
  readonly tokens: number;
}

/** How an engine behind a network is connected to. */
export interface ConnectionLimits {
  readonly poolSize: number;
  readonly connectTimeoutMs: number;
  /** With all retries, an operation takes at most a second longer than this. */
  readonly statementTimeoutMs: number;
}

/** Together below the deadline of a commit and the time after which idle clients are dropped. */
export const defaultConnectionLimits: ConnectionLimits = {
  poolSize: 10,
  connectTimeoutMs: 3_000,
  statementTimeoutMs: 5_000,
};

/** How often, at least, a process looks for writes of other processes. */
export const otherProcessesMs = 1_000;

/**
 * The garden of test writes, which show whether commits work. No caller has it: names hold no line
 * break.
 */
export const trialGarden = "\n";

/** How long a storage that is being closed may take to finish what is under way. */
export const closeMs = 2_000;

/**
 * Fails unless the schema is the newest, in words that follow "Cannot open …: ". 0 is an empty
 * store.
 */
export function checkSchema(found: number, newest: number): void {
  if (found === newest || found === 0) return;
  const reason =
    found > newest
      ? `its schema is ${found}, and this version knows schemas up to ${newest}: use a newer version`
      : `its schema is ${found}, of version 1.0 or older: open it with 2.0 first`;
  throw new PlantStoreError("unavailable", reason);
}

/** The first id to read after `after`; absent after the last possible one. */
export function idAfter(after: PlantId | undefined, order: Order = "asc"): PlantId | undefined {
  if (order === "desc") {
    if (after === undefined) return plantIdMax;
    return after > plantIdMin ? after - 1n : undefined;
  }
  if (after === undefined) return plantIdMin;
  return after < plantIdMax ? after + 1n : undefined;
}
