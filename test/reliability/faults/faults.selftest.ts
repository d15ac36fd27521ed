/** Programs that do not survive a failed call are found out. */
import { beforeAll, describe, expect, test } from "bun:test";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { failing } from "./failures.ts";
import { type Stroke, strike } from "./fault-trial.ts";
import { makeScenes, type Scene } from "./scenes.ts";

interface Case {
  /** Of a start that finds a log, and serves. */
  readonly stroke: Omit<Stroke, "scene">;
  /** What a program would have to do for the fault to have an effect, and what is found then. */
  readonly edit: Edit;
  readonly found: RegExp;
}

const syncs = failing("EIO", ["sync"]);
const cases: Record<string, Case> = {
  "a sync that fails is answered as if it had not": {
    stroke: { failure: syncs, nth: 1, isLasting: false },
    edit: {
      file: "storage/sqlite/writer.ts",
      text: "      commit.run();\n",
      by: `      try { commit.run(); } catch { if (database.inTransaction) database.run("ROLLBACK"); }\n`,
    },
    found: /lost: trouble/,
  },
  "a commit that failed counts as if nothing of it were left": {
    stroke: { failure: syncs, nth: 1, isLasting: true },
    edit: {
      file: "storage/sqlite/writer.ts",
      text: "throw isWritten ? mapCommitError(error) : error;",
      by: "throw error;",
    },
    found: /after a kill: back again: trouble/,
  },
  "nothing is synced": {
    stroke: { failure: failing("ENOSPC", ["write"]), nth: 1, isLasting: true },
    edit: {
      file: "storage/sqlite/open.ts",
      text: "PRAGMA synchronous = FULL",
      by: "PRAGMA synchronous = OFF",
    },
    found: /after a power cut: lost: after it/,
  },
};

describe.skipIf(!isInterposable)(
  "a call that fails costs no promise, and a program is found out where",
  () => {
    let scene: Scene;
    beforeAll(async () => {
      scene = (await makeScenes())[1] as Scene;
    });

    test.each(Object.keys(cases))("%s", async (name) => {
      const { stroke, edit, found } = cases[name] as Case;
      using broken = changeProgram([edit]);
      const [right, wrong] = await Promise.all(
        [{}, { program: broken.program }].map((program) =>
          strike({ ...stroke, ...program, scene: { ...scene, isFromStart: false } }),
        ),
      );
      expect(right?.faults).toEqual([]);
      expect(right?.figures["calls that failed"]).toBeGreaterThan(0);
      expect(wrong?.faults.join("\n")).toMatch(found);
    });
  },
);
