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
    text: "storeKey.run(garden, toBytes(key), entries, expiresAtMs);",
    by: "setTimeout(() => storeKey.run(garden, toBytes(key), entries, expiresAtMs), 1);",
  },
  "stores no keys for the lines of a bulk": {
    file: "storage/rules.ts",
    text: "if (key && keyRow) {",
    by: "if (key && keyRow && !key.isLine) {",
  },
  "confirms a put before its commit": {
    file: "storage/sqlite/writer.ts",
    text: "replacePlant.run(name, tag, garden, id);",
    by: "setTimeout(() => replacePlant.run(name, tag, garden, id), 1);",
  },
  "counts plants in a transaction after theirs": {
    file: "storage/sqlite/writer.ts",
    text: "storeGarden.run(garden, lastId, plants, keys);",
    by: `const more = inserted.length - deleted.length;
      storeGarden.run(garden, lastId, plants - more, keys);
      const count = "UPDATE gardens SET plants = plants + ? WHERE garden = ?";
      setTimeout(() => database.run(count, [more, garden]), 1);`,
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
