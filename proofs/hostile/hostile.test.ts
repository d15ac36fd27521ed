/** One caller, or connections without a token, can't stop the service or hold up others. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { skipsOutsideLinux } from "../../test/skipping.ts";
import { crowds } from "./crowds.ts";
import { type SetupName, tryCrowd } from "./trial.ts";

setDefaultTimeout(120_000);

/** Other tests run at the same time. 1.0 was slower than this by far, or died. */
const leniency = 6;
const durationMs = 1_500;

/**
 * What failed on 1.0, on the setup where it was worst, and a crowd on each engine that looks at
 * many plants. `npm run prove hostile` has the others.
 */
const rows: readonly [connections: number, crowd: string, setup: SetupName][] = [
  [6_000, "unfinished bodies, no token", "sqlite, 1 thread"],
  [500, "unread library, no token", "sqlite, 1 thread"],
  [160, "bulks of 256", "sqlite, 2 threads"],
  [600, "HEADs of 1,000 plants", "sqlite, 1 thread"],
  [600, "lists of 500, each another one", "postgres, 1 instance"],
  [100, "unread bulk results", "sqlite, 1 thread"],
  [50, "slow readers", "postgres, 1 instance"],
  [300, "searches", "sqlite, 1 thread"],
];

test.skipIf(skipsOutsideLinux()).each(rows)(
  "a quiet user notices little of a crowd: %d × %s, on %s",
  async (connections, name, setup) => {
    const crowd = crowds.find((each) => each.name === name);
    if (crowd === undefined) throw new Error(`There is no crowd "${name}".`);
    const program = process.env.PLANTSTORE_TEST_PROGRAM;
    const options = { connections, durationMs, leniency, program };
    expect((await tryCrowd(crowd, setup, options)).faults).toEqual([]);
  },
  { retry: 2 },
);
