/**
 * Counts the changes of each garden, in memory that all threads share, so that a thread can tell
 * cheaply whether a list that it has cached still stands. Gardens share counts by a hash of their
 * names: at worst a list is read again although nothing in it changed.
 */

import type { GardenVersion, Write } from "../../domain/ports.ts";

/** A power of two. */
const slots = 4_096;
/**
 * The first half counts all changes, the second half changes other than appends. A commit counts
 * twice, before and after, so a count is odd while a commit is under way.
 */
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
    return { all: this.#stable(slot), withoutAppends: this.#stable(slots + slot) };
  }

  #stable(index: number): number | undefined {
    const count = Atomics.load(this.#counts, index);
    return count % 2 === 0 ? count : undefined;
  }

  /**
   * Call it before these writes are committed, and the returned function after that, before anyone
   * gets a response. In between, lists are read but not cached: some clients already see the
   * writes, and must not get an older list from the cache next.
   */
  begin(writes: readonly Pick<Write, "kind" | "garden" | "id">[]): () => void {
    const changing = new Set<number>();
    for (const write of writes) {
      const slot = slotOf(write.garden);
      changing.add(slot);
      const isAppend = write.kind === "create" && write.id === undefined;
      if (!isAppend) changing.add(slots + slot);
    }
    const step = () => {
      for (const index of changing) Atomics.add(this.#counts, index, 1);
    };
    step();
    return step;
  }

  /** Another process wrote something, and nobody knows where. */
  changeAll(): void {
    for (let index = 0; index < counts; index++) Atomics.add(this.#counts, index, 2);
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
