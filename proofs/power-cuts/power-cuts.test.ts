/** Confirmed writes survive a power cut at any moment, whatever the disk does to unsynced data. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { skipsUnless } from "../../test/skipping.ts";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { joinTrials, type Trial } from "../proof.ts";
import { cutPower } from "./backup-cuts.ts";
import { checkpointOften, PowerCuts, record } from "./power-cut.ts";

setDefaultTimeout(120_000);

const seed = 7;
const writes = 120;
const imagesCount = 10;

const isSkipped = skipsUnless(isInterposable, "needs Linux on x64 or arm64");

test.skipIf(isSkipped)(
  "after a power cut, every confirmed write is there, on every disk that may be left",
  async () => {
    const log = await record({ seed, writes, edits: [checkpointOften(20)] });
    const cuts = new PowerCuts(log, imagesCount);
    const trials: Trial[] = [];
    for (let index = 0; index < imagesCount; index++) {
      trials.push(await cuts.examine(index, seed + index));
    }
    const { faults, figures } = joinTrials(trials);
    expect(faults).toEqual([]);
    expect(figures["confirmed writes checked"]).toBeGreaterThan(imagesCount * writes);
  },
);

test.skipIf(isSkipped).each(["backup", "restore"] as const)(
  "a power cut during a %s leaves no half a file under its name",
  async (command) => expect(await cutPower(command)).toEqual([]),
);
