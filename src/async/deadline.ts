/** Stops waiting for work that takes too long. */

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
