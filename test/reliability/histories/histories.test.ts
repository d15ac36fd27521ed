/**
 * What clients see who get into each other's way is what one client after the other could have
 * seen.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Engine } from "./deployment.ts";
import { Suite } from "./suite.ts";

setDefaultTimeout(120_000);

const historiesCount = 24;

describe.each(["sqlite", "postgres"] as const)("on %s", (engine: Engine) => {
  test("no client is told what could not be, whoever is killed or cut off meanwhile", async () => {
    const suite = await Suite.start(engine);
    const told = { operations: 0, unknown: 0 };
    try {
      for (let seed = 1; seed <= historiesCount; seed++) {
        const { faults, figures } = await suite.run(seed);
        expect({ seed, faults }).toEqual({ seed, faults: [] });
        told.operations += figures.operations ?? 0;
        told.unknown += figures.unknown ?? 0;
      }
    } finally {
      await suite.stop();
    }
    // Else there would be little to be wrong.
    expect(told.unknown).toBeLessThan(told.operations / 10);
  });
});
