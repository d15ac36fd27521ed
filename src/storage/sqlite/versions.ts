/**
 * Counts the changes of each garden, in memory that all threads share, so that a thread can tell
 * cheaply whether a list that it has cached still stands. Gardens share counts by a hash of their
 * names: at worst a list is read again although nothing in it changed.
 */

import type { GardenVersion } from "../../domain/storage.ts";

/** A power of two. */
const slots = 4_096;
/** The first half counts all changes, the second half those that are not appends. */
const counts = 2 * slots;

export class GardenVersions {
  readonly memory: SharedArrayBuffer;
  readonly #counts: Int32Array;

  constructor(memory = new SharedArrayBuffer(counts * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#counts = new Int32Array(memory);
  }

  read(garden: string): GardenVersion {
    const slot = slotOf(garden);
    return {
      all: Atomics.load(this.#counts, slot),
      withoutAppends: Atomics.load(this.#counts, slots + slot),
    };
  }

  /** Call it after the commit, and before anyone gets a response. */
  change(garden: string, isAppend: boolean): void {
    const slot = slotOf(garden);
    Atomics.add(this.#counts, slot, 1);
    if (!isAppend) Atomics.add(this.#counts, slots + slot, 1);
  }

  /** Another process wrote something, and nobody knows where. */
  changeAll(): void {
    for (let index = 0; index < counts; index++) Atomics.add(this.#counts, index, 1);
  }
}

/** FNV-1a. */
function slotOf(garden: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < garden.length; index++) {
    hash = Math.imul(hash ^ garden.charCodeAt(index), 0x01000193);
  }
  return (hash ^ (hash >>> 16)) & (slots - 1);
}
