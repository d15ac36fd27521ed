/** A few seconds of the long run: all is answered as it should be, and nothing stays behind. */
import { expect, test } from "bun:test";
import { soak } from "./soak.ts";

const seconds = 1_000;
const grownMbMax = 2;

test.skipIf(process.platform !== "linux")(
  "under an even load of every kind each answer is the expected one, and leaves nothing behind",
  async () => {
    const { answers, faults, samples, held } = await soak({
      durationMs: 10 * seconds,
      warmUpMs: 4 * seconds,
      rate: 3_000,
      sampleEveryMs: 500,
    });
    expect(faults).toEqual([]);
    expect(answers).toBeGreaterThan(100);
    // A hundred bytes per response would be more; the cache of lists may still be filling up.
    expect(held.after.heapMb - held.before.heapMb).toBeLessThan(grownMbMax);
    expect(samples.length).toBeGreaterThan(0);
    for (const { residentMb, openFiles } of samples) {
      expect(residentMb).toBeLessThan(300);
      expect(openFiles).toBeLessThan(200);
    }
  },
);
