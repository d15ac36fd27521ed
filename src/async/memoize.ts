/** Work that many callers need at the same time is done once for all of them. */

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
