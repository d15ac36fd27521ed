/** Promises that are shared, not waited for too long, or avoided where the result is there. */

/** A read of SQLite is there when it returns; a read of PostgreSQL comes later. */
export type MaybePromise<Result> = Result | Promise<Result>;

/** Goes on with a result: at once if it's there. To await it all the same would take longer. */
export function andThen<Result, Next>(
  result: MaybePromise<Result>,
  next: (result: Result) => MaybePromise<Next>,
): MaybePromise<Next> {
  return result instanceof Promise ? result.then(next) : next(result);
}

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
