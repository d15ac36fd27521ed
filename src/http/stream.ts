/**
 * Sends a response chunk by chunk, at the client's pace: the next chunk is made when the last one
 * has left, so a slow reader holds no more than one in memory.
 */

/** An async generator would keep its last item in memory while suspended. */
export interface Source<Item> {
  /** Absent after the last item. An empty text isn't sent: the next item is made right after it. */
  next(): Promise<Item | undefined>;
  /** Call it when no further items are needed. */
  close(): void;
}

/** A client that reads slowly holds a chunk in memory, so many such clients get smaller chunks. */
export class ChunkSizes {
  #open = 0;

  constructor(
    private readonly min: number,
    private readonly max: number,
    private readonly total: number,
  ) {}

  /** How large the next chunk may be. */
  get size(): number {
    const share = Math.floor(this.total / (this.#open + 1));
    return Math.min(this.max, Math.max(this.min, share));
  }

  /** Counts a stream until the function that it returns is called. */
  open(): () => void {
    let isOpen = true;
    this.#open++;
    return () => {
      if (isOpen) this.#open--;
      isOpen = false;
    };
  }
}

const encoder = new TextEncoder();

/**
 * `turn` resolves when the next chunk may be made; the first one doesn't wait. Leave it out if the
 * source takes its own turns. `onEnd` runs once: when everything was sent, when the client left, or
 * with the error of a failed source.
 */
export function streamChunks(
  source: Source<string | Uint8Array>,
  turn: () => Promise<unknown> = async () => {},
  onEnd: (error?: unknown) => void = () => {},
): ReadableStream {
  let hasBegun = false;
  let hasEnded = false;
  function end(error?: unknown): void {
    if (hasEnded) return;
    hasEnded = true;
    source.close();
    onEnd(error);
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          let chunk: string | Uint8Array | undefined;
          do {
            if (hasBegun) await turn();
            // The client may have left while it waited, here and below.
            if (hasEnded) return;
            hasBegun = true;
            chunk = await source.next();
            if (hasEnded) return;
          } while (chunk === "");
          if (chunk !== undefined) {
            return controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
          }
          controller.close();
          end();
        } catch (error) {
          // The status has been sent, so the client can see the failure only by the missing end.
          controller.error(error);
          end(error);
        }
      },
      cancel: () => end(),
    },
    // The runtime holds the chunk that is being sent; nothing else is queued.
    { highWaterMark: 0 },
  );
}
