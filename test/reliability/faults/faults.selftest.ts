/** Programs that do not survive a failed call are found out. */
import { beforeAll, describe, expect, test } from "bun:test";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { type Failure, failing } from "./failures.ts";
import { type Stroke, strike } from "./fault-trial.ts";
import { makeScenes, type Scene } from "./scenes.ts";

interface Case {
  /** Of a start that finds a log, and serves. */
  readonly stroke: Omit<Stroke, "scene">;
  readonly isFromStart: boolean;
  /** What a program would have to do for the fault to have an effect, and what is found then. */
  readonly edit: Edit;
  readonly found: RegExp;
}

const syncs = failing("EIO", ["sync"]);
/**
 * The thread that commits is the third that opens the file; the runtime's SQLite then opens it to
 * read.
 */
const opensToRead: Failure = {
  ...failing("EIO", ["open"]),
  rules: () => [{ kinds: ["open"], suffix: "plants.db", error: "EIO", first: 3, last: 3 }],
};

const cases: Record<string, Case> = {
  "a sync that fails is answered as if it had not": {
    stroke: { failure: syncs, nth: 1, isLasting: false },
    isFromStart: false,
    edit: {
      file: "storage/sqlite/writer.ts",
      text: "      commit.run();\n",
      by: `      try { commit.run(); } catch { if (database.inTransaction) database.run("ROLLBACK"); }\n`,
    },
    found: /lost: trouble/,
  },
  "a commit that failed counts as if nothing of it were left": {
    stroke: { failure: syncs, nth: 1, isLasting: true },
    isFromStart: false,
    edit: {
      file: "storage/sqlite/writer.ts",
      text: "throw isWritten ? mapCommitError(error) : error;",
      by: "throw error;",
    },
    found: /after a kill: back again: trouble/,
  },
  "a connection that failed is used again": {
    stroke: { failure: opensToRead, nth: 1, isLasting: false },
    isFromStart: true,
    edit: {
      file: "storage/sqlite/worker.ts",
      text: `if (error instanceof PlantStoreError && error.code === "unavailable") disconnect();`,
      by: "",
    },
    found: /it did not recover/,
  },
  "nothing is synced": {
    stroke: { failure: failing("ENOSPC", ["write"]), nth: 1, isLasting: true },
    isFromStart: false,
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
      const { stroke, isFromStart, edit, found } = cases[name] as Case;
      using broken = changeProgram([edit]);
      const [right, wrong] = await Promise.all(
        [{}, { program: broken.program }].map((program) =>
          strike({ ...stroke, ...program, scene: { ...scene, isFromStart } }),
        ),
      );
      expect(right?.faults).toEqual([]);
      expect(right?.figures["calls that failed"]).toBeGreaterThan(0);
      expect(wrong?.faults.join("\n")).toMatch(found);
    });
  },
);
