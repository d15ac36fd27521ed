/**
 * Sends text chunk by chunk, at the pace of the client: the next chunk is made when the last one
 * has left, so a slow reader holds no more than one in memory.
 */
import type { Source } from "../domain/plants.ts";

const encoder = new TextEncoder();

type MakeChunk = () => Promise<string | undefined>;

/**
 * `pace` makes each chunk after the first when it is its turn. `onEnd` runs once: when all was
 * sent, when the client left, or with the error of a failed source.
 */
export function streamText(
  source: Source<string>,
  pace: (make: MakeChunk) => ReturnType<MakeChunk>,
  onEnd: (error?: unknown) => void,
): ReadableStream {
  const makeChunk = () => source.next();
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
          const making = hasBegun ? pace(makeChunk) : makeChunk();
          hasBegun = true;
          const chunk = await making;
          // The client may have disconnected.
          if (hasEnded) return;
          if (chunk !== undefined) return controller.enqueue(encoder.encode(chunk));
          controller.close();
          end();
        } catch (error) {
          // The status has gone out: all that is left is to break off, so that the client sees it.
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
