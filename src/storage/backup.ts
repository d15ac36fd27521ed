/**
 * What a backup and its restoration need of an engine. The comments are the contract; nothing here
 * knows which engine it is, nor how a backup is sealed.
 */
import type { Tally } from "./copy.ts";

/** What a backup says of itself, to be recognised by. */
export interface Contents {
  readonly plants: number;
  readonly tokens: number;
}

/**
 * Copies everything that a storage keeps at one moment into a new SQLite file, while others go on
 * reading and writing. Both steps fail with the signal's reason when they are told to stop.
 */
export interface SnapshotCopy {
  copy(tally: Tally, signal: AbortSignal): Promise<void>;

  /** Compares the copy with that moment, record by record. Fails with `internal` if they differ. */
  compare(tally: Tally, signal: AbortSignal): Promise<Contents>;
}

/**
 * A place that takes a whole store, and takes nothing else meanwhile as far as the engine can tell.
 */
export interface Restoration {
  /**
   * Where the store is to be put, as a SQLite file that is not there yet. It goes with the
   * restoration.
   */
  readonly unpackedPath: string;

  /**
   * Puts the file's store in place, all of it or nothing, and resolves once it is on stable
   * storage: to where the older one is kept, if there was one.
   */
  fill(tally: Tally, signal: AbortSignal): Promise<string | undefined>;
}

/** What is done with something that is let go of afterwards, however that ends. */
export type Use<Subject, Result> = (subject: Subject) => Promise<Result>;
