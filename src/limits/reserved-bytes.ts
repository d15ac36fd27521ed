/**
 * Bounds the bytes that long bodies, the results of bulk requests and long pages of lists take
 * until their responses are sent. Each garden may reserve as much as is left free: one garden gets
 * half, two get a third each, and there is always some left for the next.
 */
import { overloaded } from "./overload.ts";

const reservedBytesMax = 16 * 1024 * 1024;

export class ReservedBytes {
  readonly #byQueue = new Map<string, number>();
  #total = 0;

  /** What one request reserves. The caller releases it. */
  open(queue: string): Reservation {
    return new Reservation(this, queue);
  }

  tryChange(queue: string, bytes: number): boolean {
    const ofQueue = (this.#byQueue.get(queue) ?? 0) + bytes;
    if (bytes > 0 && ofQueue > reservedBytesMax - this.#total) return false;
    this.#total += bytes;
    if (ofQueue === 0) this.#byQueue.delete(queue);
    else this.#byQueue.set(queue, ofQueue);
    return true;
  }
}

export class Reservation {
  #bytes = 0;
  #isOpen = true;

  constructor(
    private readonly all: ReservedBytes,
    private queue: string,
  ) {}

  /** Returns whether there was room. A negative number gives bytes back. */
  tryAdd(bytes: number): boolean {
    // A body may still be arriving after its request was refused. It stops here.
    if (!this.#isOpen || !this.all.tryChange(this.queue, bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /**
   * Fails with `overloaded` if the queue has reserved too much already. A queue is a garden's, or
   * one for requests whose garden isn't known.
   */
  add(bytes: number): void {
    if (!this.tryAdd(bytes)) throw overloaded;
  }

  /** Counts for another queue from now on. Returns whether that has room. */
  tryMoveTo(queue: string): boolean {
    const bytes = this.#bytes;
    this.tryAdd(-bytes);
    this.queue = queue;
    return this.tryAdd(bytes);
  }

  release(): void {
    if (this.#isOpen && this.#bytes > 0) this.all.tryChange(this.queue, -this.#bytes);
    this.#isOpen = false;
  }
}
