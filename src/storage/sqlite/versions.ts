/**
 * Counts the changes of each garden in memory that all threads share, so that a thread can tell
 * whether its cached list is still current. The hash of a garden's name chooses one of the
 * counters. Gardens that share one cause needless reads, and no wrong lists.
 */
import type { Write } from "../../domain/ports.ts";

/** A power of two. */
const slots = 4_096;

/** A commit counts twice, before and after, so a count is odd while a commit is under way. */
export class GardenVersions {
  readonly memory: SharedArrayBuffer;
  readonly #counts: Int32Array;

  constructor(memory = new SharedArrayBuffer(slots * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#counts = new Int32Array(memory);
  }

  /** See `PlantStorage.version`. */
  read(garden: string): number | undefined {
    const count = Atomics.load(this.#counts, slotOf(garden));
    return count % 2 === 0 ? count : undefined;
  }

  /**
   * Call it before these writes are committed. Call the function that it returns after the commit,
   * before anyone gets a response. In between, lists are read but not cached: some clients already
   * see the writes, and must not get an older list from the cache next.
   */
  begin(writes: readonly Pick<Write, "garden">[]): () => void {
    const changing = new Set(writes.map(({ garden }) => slotOf(garden)));
    const step = () => {
      for (const slot of changing) Atomics.add(this.#counts, slot, 1);
    };
    step();
    return step;
  }

  /** Another process wrote something, and nobody knows where. */
  changeAll(): void {
    for (let slot = 0; slot < slots; slot++) Atomics.add(this.#counts, slot, 2);
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
