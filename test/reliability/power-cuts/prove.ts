/** `npm run prove power-cuts [images] [seed]`: many disks as power cuts may leave them. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import { prove } from "../proof.ts";
import { PowerCuts } from "./power-cut.ts";
import { checkpointOften, type RecordingOptions, record } from "./recording.ts";

/** Of one recording. */
const imagesCount = 250;
/** The real program takes a while to start, so it opens only these images. */
const servedEvery = 100;
/** More than a recording and the one before it use. */
const seedsOfRecording = 10;
const output = join(import.meta.dir, "../../.output/power-cuts");

let current: { number: number; log: Buffer; cuts: PowerCuts } | undefined;

await prove({
  name: "power-cuts",
  trials: "images",
  count: 10_000,
  async run(seed) {
    const number = Math.floor(seed / imagesCount);
    const isNew = current?.number !== number;
    if (isNew || !current) current = await load(number);
    const { cuts, log } = current;
    const by = seed % servedEvery === 0 ? "program" : "here";
    const cut = { index: seed % imagesCount, count: imagesCount, seed };
    const { faults, promised, cutOff } = await cuts.examine(cut, by);
    if (faults.length > 0) keep(number, log);
    return {
      faults,
      figures: {
        recordings: Number(isNew),
        "calls recorded": isNew ? cuts.callsCount : 0,
        "confirmed writes checked": promised,
        "bulks cut off": cutOff.length,
        "lines resent": cutOff.reduce((sum, lines) => sum + lines, 0),
        "images opened by the program": Number(by === "program"),
      },
    };
  },
});

/** No two recordings are alike, so one with a fault is kept, and used again the next time. */
async function load(number: number): Promise<NonNullable<typeof current>> {
  const kept = pathOf(number);
  const log = existsSync(kept) ? readFileSync(kept) : await record(await choose(number));
  return { number, log, cuts: new PowerCuts(log) };
}

function keep(number: number, log: Buffer): void {
  mkdirSync(output, { recursive: true });
  writeFileSync(pathOf(number), log);
}

function pathOf(number: number): string {
  return join(output, `recording-${number}`);
}

/**
 * Checkpoints after a few pages, some, or as usual, which takes a while. One in three starts from
 * what a power cut has left of a brief recording.
 */
async function choose(number: number): Promise<RecordingOptions> {
  const dice = makeDice(spread(number));
  const pages = [4, 20, 100, undefined][dice(4)];
  const seed = number * seedsOfRecording;
  const options: RecordingOptions = {
    seed,
    writes: pages === undefined ? 1_500 : 200 + dice(500),
    extent: "whole",
    edits: pages === undefined ? [] : [checkpointOften(pages)],
  };
  if (dice(3) > 0) return options;
  const earlier = {
    ...options,
    seed: seed + seedsOfRecording / 2,
    writes: 200,
    extent: "brief",
  } as const;
  const leftover = new PowerCuts(await record(earlier)).cut({ index: 1, count: 2, seed });
  return { ...options, leftover };
}
