/** Promises that are shared, or not waited for too long. */

/**
 * The work's result or, if it takes longer than `ms`, whatever `onLate` returns or throws. The work
 * itself goes on, and a later failure of it is ignored.
 */
export async function deadline<Result>(
  work: Promise<Result>,
  ms: number,
  onLate: () => Result,
): Promise<Result> {
  let timer: Timer | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, ms));
  });
  try {
    return await Promise.race([work, late.then(onLate)]);
  } finally {
    clearTimeout(timer);
  }
}

/** Runs `make` once, ever; after a failure, again for the next caller. */
export function memoizeAsync<Result>(make: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | undefined;
  return () => {
    result ??= make().catch((error) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}

/** Callers that come while `make` runs share its result. */
export function singleFlight<Result>(make: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined;
  return () => {
    running ??= make().finally(() => {
      running = undefined;
    });
    return running;
  };
}
