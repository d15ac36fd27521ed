/**
 * Counts the changes of each garden, in memory that all threads share, so that a thread can tell
 * cheaply whether a list that it has cached still stands. Gardens share counts by a hash of their
 * names: at worst a list is read again although nothing in it changed.
 */

/** A power of two. */
const slots = 4_096;

export class GardenVersions {
  readonly memory: SharedArrayBuffer;
  readonly #counts: Int32Array;

  constructor(memory = new SharedArrayBuffer(slots * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#counts = new Int32Array(memory);
  }

  read(garden: string): number {
    return Atomics.load(this.#counts, slotOf(garden));
  }

  /** To be called after the commit, and before anyone is told of it. */
  change(garden: string): void {
    Atomics.add(this.#counts, slotOf(garden), 1);
  }

  /** Another process wrote something, and nobody knows where. */
  changeAll(): void {
    for (let slot = 0; slot < slots; slot++) Atomics.add(this.#counts, slot, 1);
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
