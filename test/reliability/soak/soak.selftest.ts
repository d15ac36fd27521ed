/** A build that keeps something of every request fails the short run. */
import { expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { skipsOutsideLinux } from "../../skipping.ts";
import { shortRun, soak } from "./soak.ts";

test.skipIf(skipsOutsideLinux())(
  "a leak of a small object per request is found",
  async () => {
    const text = "const route = exchange.route?.path;";
    using broken = changeProgram([
      {
        file: "http/exchange.ts",
        text,
        by: `${text} ((globalThis as any).leaked ??= []).push({ at: new Array(20).fill(0) });`,
      },
    ]);
    const { heapBytesPerResponse } = await soak({ ...shortRun, program: broken.program });
    expect(heapBytesPerResponse).toBeGreaterThan(shortRun.heapBytesPerResponseMax);
  },
  60_000,
);
