/** Programs that promise more than the disk has are found out. */
import { describe, expect, test } from "bun:test";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { brokenBuilds } from "./builds.ts";
import { PowerCuts } from "./power-cut.ts";
import { record } from "./recording.ts";

const seed = 7;
const writes = 200;
const brokenImagesMax = 60;

describe.skipIf(!isInterposable)("faults are found in a program that", () => {
  test.each(Object.entries(brokenBuilds))("%s", async (_, edits) => {
    const cuts = new PowerCuts(await record({ seed, writes, extent: "brief", edits }));
    const faults = [];
    for (let index = 0; index < brokenImagesMax && faults.length === 0; index++) {
      const cut = { index, count: brokenImagesMax, seed: seed + index };
      faults.push(...(await cuts.examine(cut, "here")).faults);
    }
    expect(faults).not.toEqual([]);
  });
});
