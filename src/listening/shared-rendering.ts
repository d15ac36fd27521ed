/**
 * One making for all who ask at the same time. Anyone may ask for the metrics, and to render those
 * of four threads takes a millisecond of the main one and a part of it of each.
 */

/**
 * Runs `make` at the end of a turn of the event loop, never twice at once. Who asks while it runs
 * shares the next one: what was made holds all that had happened before it was asked for.
 */
export function shareNext<Result>(make: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<Result> | undefined;
  async function makeNext(): Promise<Result> {
    await running;
    await new Promise((resolve) => setImmediate(resolve));
    next = undefined;
    const making = make();
    running = making.catch(() => {});
    return making;
  }
  return () => {
    next ??= makeNext();
    return next;
  };
}
