/** Builds that do not survive a failed sync fail the suite; the real one passes. */
import { describe, expect, test } from "bun:test";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { skipsUnless } from "../../skipping.ts";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { inject } from "./fault-trial.ts";
import { failing, makeScenes, type Scene } from "./injections.ts";

interface BrokenBuild extends Omit<Edit, "file"> {
  readonly isLasting: boolean;
  readonly found: RegExp;
}

const brokenBuilds: Record<string, BrokenBuild> = {
  "confirms a write whose sync failed": {
    isLasting: false,
    text: "      commit.run();\n",
    by: `      try { commit.run(); } catch { if (database.inTransaction) database.run("ROLLBACK"); }\n`,
    found: /lost: trouble/,
  },
  "says that nothing is left of a failed commit": {
    isLasting: true,
    text: "throw isWritten ? mapCommitError(error) : error;",
    by: "throw error;",
    found: /after a kill: back again: trouble/,
  },
};

describe.skipIf(skipsUnless(isInterposable, "needs Linux on x64 or arm64"))(
  "faults are found in a build that",
  () => {
    test.each(Object.entries(brokenBuilds))("%s", async (_, { isLasting, text, by, found }) => {
      using broken = changeProgram([{ file: "storage/sqlite/writer.ts", text, by }]);
      const scene = { ...((await makeScenes())[1] as Scene), isFromStart: false };
      const injection = { scene, failure: failing("EIO", ["sync"]), nth: 1, isLasting };
      const right = await inject(injection);
      expect(right.faults).toEqual([]);
      expect(right.figures["calls that failed"]).toBeGreaterThan(0);
      const wrong = await inject({ ...injection, program: broken.program });
      expect(wrong.faults.join("\n")).toMatch(found);
    });
  },
);
