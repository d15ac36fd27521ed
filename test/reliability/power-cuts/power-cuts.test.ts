/** Confirmed writes survive a power cut at any moment, whatever the disk does to unsynced data. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { skipsUnless } from "../../skipping.ts";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { PowerCuts } from "./power-cut.ts";
import { checkpointOften, record } from "./recording.ts";

setDefaultTimeout(120_000);

const seed = 7;
const writes = 120;
const imagesCount = 40;

describe.skipIf(skipsUnless(isInterposable, "needs Linux on x64 or arm64"))(
  "after a power cut",
  () => {
    test("every confirmed write is there, on every disk that may be left", async () => {
      const edits = [checkpointOften(20)];
      const cuts = new PowerCuts(await record({ seed, writes, extent: "whole", edits }));
      const faults = [];
      let promisedMax = 0;
      let bulksCutOff = 0;
      for (let index = 0; index < imagesCount; index++) {
        const by = index === imagesCount - 1 ? "program" : "here";
        const cut = { index, count: imagesCount, seed: seed + index };
        const found = await cuts.examine(cut, by);
        faults.push(...found.faults);
        promisedMax = Math.max(promisedMax, found.promised);
        bulksCutOff += found.cutOff.length;
      }
      expect(faults).toEqual([]);
      expect(promisedMax).toBeGreaterThan(writes);
      expect(bulksCutOff).toBeGreaterThan(0);
    });
  },
);
