/** What is made or loaded when it is first needed. */

/** Runs `make` once for all callers; after a failure, again for the next one. */
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
