/** Properties of random values. A failure names the seed, which repeats it. */
import fc from "fast-check";

const variable = "PLANTSTORE_TEST_SEED";
const given = process.env[variable];

/** Another one in each run, unless it is given. */
export const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
if (!Number.isSafeInteger(seed)) throw new Error(`${variable} must be a number, not "${given}".`);

/** What a failure ends with. */
export const howToRepeat = `To repeat it: ${variable}=${seed}`;

/** Fails unless it holds for this many random values. */
export function always<Values>(property: fc.IRawProperty<Values, false>, count: number): void {
  report(fc.check(property, { numRuns: count, seed }));
}

/** The same for a property that waits. */
export async function alwaysAsync<Values>(
  property: fc.IAsyncProperty<Values>,
  count: number,
): Promise<void> {
  report(await fc.check(property, { numRuns: count, seed }));
}

/** With the smallest values that it was found to fail for. */
function report<Values>(details: fc.RunDetails<Values>): void {
  if (!details.failed) return;
  const cause = details.errorInstance;
  throw new Error(`${fc.defaultReportMessage(details)}\n${howToRepeat}`, { cause });
}
