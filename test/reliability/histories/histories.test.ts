/** What concurrent clients see could have happened one operation after the other. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Operation } from "./history.ts";
import { isLinearizable } from "./linearization.ts";
import { Suite } from "./trial.ts";

setDefaultTimeout(120_000);

const historiesCount = 16;

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

describe("a put that repeats what the plant is", () => {
  const put = (name: string, calledAtMs: number, endedAtMs: number, isNew = false): Operation => ({
    who: "",
    call: { kind: "put", id: 2n, name, tag: "" },
    result: isNew ? { kind: "created", id: 2n, isReplayed: false } : { kind: "replaced" },
    ...{ calledAtMs, endedAtMs },
  });
  const get = (name: string, atMs: number): Operation => ({
    who: "",
    call: { kind: "get", id: 2n },
    result: { kind: "found", plant: { name, tag: "" } },
    ...{ calledAtMs: atMs, endedAtMs: atMs + 1 },
  });

  test.each([
    ["may have come after another one at the same time", "Fern", true],
    ["may have come before it", "Moss", true],
    ["explains no third name", "Ivy", false],
  ])("%s", (_, name, isExplained) => {
    const puts = [put("Fern", 0, 1, true), put("Moss", 2, 9), put("Fern", 3, 9)];
    expect(isLinearizable([...puts, get(name, 10)])).toBe(isExplained);
  });
});
