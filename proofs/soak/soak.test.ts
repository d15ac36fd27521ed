/** A few seconds of the long run: every response is the expected one, and no memory leaks. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { skipsOutsideLinux } from "../../test/skipping.ts";
import { shortRun, soak } from "./soak.ts";

setDefaultTimeout(120_000);

test.skipIf(skipsOutsideLinux())("under a steady load no response leaves much behind", async () => {
  const { responses, faults, samples, heapBytesPerResponse } = await soak(shortRun);
  // A busy machine may refuse some.
  expect(faults.filter((fault) => !fault.endsWith(": 503"))).toEqual([]);
  expect(responses).toBeGreaterThan(100);
  expect(heapBytesPerResponse).toBeLessThan(shortRun.heapBytesPerResponseMax);
  expect(Math.max(...samples.map(({ residentMb }) => residentMb))).toBeLessThan(300);
  expect(Math.max(...samples.map(({ openFiles }) => openFiles))).toBeLessThan(200);
});
