/** Sends text piece by piece, at the pace of the client; the next piece is made when it is wanted. */

const encoder = new TextEncoder();

/** `onEnd` runs once, whether all was sent, the client left, or the source failed. */
export function streamText(pieces: AsyncIterable<string>, onEnd: () => void): ReadableStream {
  const iterator = pieces[Symbol.asyncIterator]();
  let hasEnded = false;
  function end(): void {
    if (!hasEnded) onEnd();
    hasEnded = true;
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const piece = await iterator.next();
          if (!piece.done) return controller.enqueue(encoder.encode(piece.value));
          controller.close();
        } catch (error) {
          // The status has gone out: all that is left is to break off, so that the client sees it.
          controller.error(error);
        }
        end();
      },
      async cancel() {
        end();
        await iterator.return?.();
      },
    },
    { highWaterMark: 1 },
  );
}
