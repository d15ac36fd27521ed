/** Builds that confirm more than is on the disk fail the suite. */
import { describe, expect, test } from "bun:test";
import type { Edit } from "../../changed-program.ts";
import { skipsUnless } from "../../skipping.ts";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { PowerCuts } from "./power-cut.ts";
import { record } from "./recording.ts";

const seed = 7;
const writes = 200;
const imagesMax = 60;

const brokenBuilds: Readonly<Record<string, Edit>> = {
  "syncs only at checkpoints": {
    file: "storage/sqlite/open.ts",
    text: "PRAGMA synchronous = FULL",
    by: "PRAGMA synchronous = NORMAL",
  },
  "does not sync the folders that it makes": {
    file: "storage/sqlite/open.ts",
    text: "syncFolderOf(made);",
    by: ";",
  },
  "stores a key in a transaction after its plant": {
    file: "storage/sqlite/writer.ts",
    text: "        keepKeys(keys.changed());",
    by: "        setTimeout(() => keepKeys(keys.changed()), 1);",
  },
  "stores no keys for the lines of a bulk": {
    file: "storage/sqlite/writer.ts",
    text: "if (keyed) keys.remember(keyed, outcome.id);",
    by: "if (keyed?.idempotency.line === undefined && keyed) keys.remember(keyed, outcome.id);",
  },
};

describe.skipIf(skipsUnless(isInterposable, "needs Linux on x64 or arm64"))(
  "faults are found in a build that",
  () => {
    test.each(Object.entries(brokenBuilds))("%s", async (_, edit) => {
      const cuts = new PowerCuts(await record({ seed, writes, extent: "brief", edits: [edit] }));
      const faults = [];
      for (let index = 0; index < imagesMax && faults.length === 0; index++) {
        const cut = { index, count: imagesMax, seed: seed + index };
        faults.push(...(await cuts.examine(cut, "here")).faults);
      }
      expect(faults).not.toEqual([]);
    });
  },
);
