/** File operations that fail at bad moments break no promise. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { skipsUnless } from "../../skipping.ts";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { inject } from "./fault-trial.ts";
import { findInjection, makeScenes } from "./injections.ts";

setDefaultTimeout(120_000);

/** Every scene, several failures, brief and lasting ones. */
const sampled = [24 * 40, 24 * 60 + 4, 24 * 30 + 11, 24 * 30 + 13];

test.skipIf(skipsUnless(isInterposable, "needs Linux on x64 or arm64"))(
  "operations here and there fail, and break no promise",
  async () => {
    const scenes = await makeScenes();
    const trials = await Promise.all(
      sampled.map((number) => inject(findInjection(number, scenes))),
    );
    expect(trials.flatMap(({ faults }) => faults)).toEqual([]);
    expect(trials.map(({ figures }) => figures["calls that failed"])).not.toContain(0);
  },
);
