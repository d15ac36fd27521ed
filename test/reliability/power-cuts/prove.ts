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
/** More than a life and the one before it use. */
const seedsOfLife = 10;
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
    const cut = { index: seed % imagesCount, count: imagesCount, seed };
    const { faults, promised } = await cuts.examine(cut, by);
    if (faults.length > 0) keep(number, log);
    return {
      faults,
      figures: {
        recordings: Number(isNew),
        "calls recorded": isNew ? cuts.callsCount : 0,
        "answered writes checked": promised,
        "images opened by the program": Number(by === "program"),
      },
    };
  },
});

/** No two recordings are alike, so that of a fault is kept, and taken the next time. */
async function live(number: number): Promise<NonNullable<typeof current>> {
  const kept = pathOf(number);
  const log = existsSync(kept) ? readFileSync(kept) : await record(await chooseLife(number));
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
 * The log is written back after a few pages, after some, or as in earnest, which takes a while. One
 * in three begins with what a power cut has left of a short life.
 */
async function chooseLife(number: number): Promise<Life> {
  const dice = makeDice(spread(number));
  const pages = [4, 20, 100, undefined][dice(4)];
  const seed = number * seedsOfLife;
  const life: Life = {
    seed,
    writes: pages === undefined ? 1_500 : 200 + dice(500),
    extent: "whole",
    edits: pages === undefined ? [] : [checkpointOften(pages)],
  };
  if (dice(3) > 0) return life;
  const earlier = { ...life, seed: seed + seedsOfLife / 2, writes: 200, extent: "brief" } as const;
  const leftover = new PowerCuts(await record(earlier)).cut({ index: 1, count: 2, seed });
  return { ...life, leftover };
}
