/** `npm run prove:power-cuts [images] [seed]`: many disks as power cuts may leave them. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import { prove } from "../proof.ts";
import { checkpointOften } from "./builds.ts";
import { PowerCuts } from "./power-cut.ts";
import { type Life, record } from "./recording.ts";

/** Of one recording. */
const imagesCount = 250;
/** The real program takes a while to start. */
const servedEvery = 100;
const output = join(import.meta.dir, "../../.output/power-cuts");

let current: { number: number; log: Buffer; cuts: PowerCuts } | undefined;

await prove({
  name: "power-cuts",
  trials: "images",
  count: 10_000,
  async run(seed) {
    const number = Math.floor(seed / imagesCount);
    const isNew = current?.number !== number;
    if (isNew || !current) current = await live(number);
    const { cuts, log } = current;
    const by = seed % servedEvery === 0 ? "program" : "here";
    const { faults, promised } = await cuts.cut(seed % imagesCount, imagesCount, seed, by);
    if (faults.length > 0) keep(number, log);
    return {
      faults,
      figures: {
        recordings: Number(isNew),
        "calls recorded": isNew ? cuts.callsCount : 0,
        "writes that had to be there": promised,
        "images served": Number(by === "program"),
      },
    };
  },
});

/** No two recordings are alike, so that of a fault is kept, and taken the next time. */
async function live(number: number): Promise<NonNullable<typeof current>> {
  const kept = pathOf(number);
  const log = existsSync(kept) ? readFileSync(kept) : await record(chooseLife(number));
  return { number, log, cuts: new PowerCuts(log) };
}

function keep(number: number, log: Buffer): void {
  mkdirSync(output, { recursive: true });
  writeFileSync(pathOf(number), log);
}

function pathOf(number: number): string {
  return join(output, `recording-${number}`);
}

/** The log is written back after a few pages, after some, or as in earnest; then it takes a while. */
function chooseLife(number: number): Life {
  const dice = makeDice(spread(number));
  const pages = [4, 20, 100, undefined][dice(4)];
  return {
    seed: number * 10,
    loadMs: pages === undefined ? 3_000 : 300 + dice(700),
    extent: "whole",
    edits: pages === undefined ? [] : [checkpointOften(pages)],
  };
}
