/** A primary that may lose writes does lose them, and the audit finds it. */
import { expect, test } from "bun:test";
import { FailoverTrial } from "./failover.ts";

test("a primary that does not wait for its standby loses writes, and the audit finds it", async () => {
  const trial = await FailoverTrial.start();
  try {
    await trial.pair.waitForStandby(false);
    const { faults } = await trial.run("cut off", 1);
    expect(faults.filter((fault) => fault.startsWith("lost: "))).not.toEqual([]);
  } finally {
    await trial.stop();
  }
});
