/**
 * Sends text piece by piece, at the pace of the client; the next piece is made when it is wanted.
 */

const encoder = new TextEncoder();

/**
 * `onEnd` runs once: when all was sent, when the client left, or with the error of a failed source.
 */
export function streamText(
  pieces: AsyncIterable<string>,
  onEnd: (error?: unknown) => void,
): ReadableStream {
  const iterator = pieces[Symbol.asyncIterator]();
  let hasBegun = false;
  let hasEnded = false;
  function end(error?: unknown): void {
    if (hasEnded) return;
    hasEnded = true;
    onEnd(error);
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          // Others have their turn in between: a client takes megabytes at once before it sets a
          // pace.
          if (hasBegun) await new Promise<void>((resolve) => setImmediate(resolve));
          hasBegun = true;
          const piece = await iterator.next();
          // The client may have left while the piece was made.
          if (hasEnded) return;
          if (!piece.done) return controller.enqueue(encoder.encode(piece.value));
          controller.close();
          end();
        } catch (error) {
          // The status has gone out: all that is left is to break off, so that the client sees it.
          controller.error(error);
          end(error);
        }
      },
      async cancel() {
        end();
        await iterator.return?.();
      },
    },
    { highWaterMark: 1 },
  );
}
