/** A few seconds of the long run: everything that it sends is answered as it should be. */
import { expect, test } from "bun:test";
import { soak } from "./soak.ts";

test.skipIf(process.platform !== "linux")(
  "under an even load of every kind each answer is the expected one",
  async () => {
    const { answers, faults, samples } = await soak({
      durationMs: 2_000,
      rate: 500,
      sampleEveryMs: 500,
    });
    expect(faults).toEqual([]);
    expect(answers).toBeGreaterThan(100);
    expect(samples.length).toBeGreaterThan(0);
    for (const { residentMb, openFiles } of samples) {
      expect(residentMb).toBeLessThan(300);
      expect(openFiles).toBeLessThan(200);
    }
  },
);
