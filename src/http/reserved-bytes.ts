/**
 * Bounds the bytes that long bodies, the results of bulk requests and long pages of lists take
 * until their responses are sent. Each garden may reserve as much as is left free: one garden gets
 * half, two get a third each, and there is always some left for the next.
 */
import { overloaded } from "../domain/errors.ts";

const reservedBytesMax = 16 * 1024 * 1024;

export class ReservedBytes {
  readonly #max: number;
  readonly #byGarden = new Map<string, number>();
  #total = 0;

  constructor(max = reservedBytesMax) {
    this.#max = max;
  }

  /** What one request reserves. The caller releases it. */
  open(garden: string): Reservation {
    let own = 0;
    let isOpen = true;
    return {
      add: (bytes) => {
        const ofGarden = (this.#byGarden.get(garden) ?? 0) + bytes;
        // A closed one stops a body that is still arriving after its request was refused.
        if (!isOpen || ofGarden > this.#max - this.#total) throw overloaded;
        own += bytes;
        this.#change(garden, bytes);
      },
      release: () => {
        if (isOpen && own > 0) this.#change(garden, -own);
        isOpen = false;
      },
    };
  }

  #change(garden: string, bytes: number): void {
    this.#total += bytes;
    const ofGarden = (this.#byGarden.get(garden) ?? 0) + bytes;
    if (ofGarden === 0) this.#byGarden.delete(garden);
    else this.#byGarden.set(garden, ofGarden);
  }
}

export interface Reservation {
  /** Fails with `overloaded` if the garden has reserved too much already. */
  add(bytes: number): void;
  release(): void;
}
