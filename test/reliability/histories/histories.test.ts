/** What concurrent clients see could have happened one operation after the other. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Suite } from "./trial.ts";

setDefaultTimeout(120_000);

/** A kill comes with seed 7, and a loss of the connections with seed 3. */
const historiesCount = 8;

describe.each(["sqlite", "postgres"] as const)("on %s", (engine) => {
  test("histories are linearizable, even if instances are killed or cut off", async () => {
    const suite = await Suite.start(engine);
    const total = { operations: 0, unknown: 0 };
    let miscounted: string[] = [];
    try {
      for (let seed = 1; seed <= historiesCount; seed++) {
        const { faults, figures } = await suite.run(seed);
        expect({ seed, faults }).toEqual({ seed, faults: [] });
        total.operations += figures.operations ?? 0;
        total.unknown += figures.unknown ?? 0;
      }
    } finally {
      miscounted = await suite.stop();
    }
    expect(miscounted).toEqual([]);
    // Most outcomes must be known for the check to mean something.
    expect(total.unknown).toBeLessThan(total.operations / 10);
  });
});
