/** `npm run prove power-cuts [images] [seed]`: many disks as power cuts may leave them. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../test/dice.ts";
import { prove } from "../proof.ts";
import { checkpointOften, PowerCuts, record } from "./power-cut.ts";

/** Of one recording. */
const imagesCount = 250;
const output = join(import.meta.dir, "../../test/.output/power-cuts");

let current: { number: number; log: Buffer; cuts: PowerCuts } | undefined;

await prove({
  trials: "images",
  count: 10_000,
  async run(seed) {
    const number = Math.floor(seed / imagesCount);
    // No two recordings are alike, so one with a fault is kept, and used again the next time.
    const kept = join(output, `recording-${number}`);
    if (current?.number !== number) {
      const log = existsSync(kept) ? readFileSync(kept) : await recordAnew(number);
      current = { number, log, cuts: new PowerCuts(log, imagesCount) };
    }
    const trial = await current.cuts.examine(seed % imagesCount, seed);
    if (trial.faults.length > 0) {
      mkdirSync(output, { recursive: true });
      writeFileSync(kept, current.log);
    }
    return trial;
  },
});

/** Checkpoints after a few pages, some, or as usual, which takes a while. */
function recordAnew(number: number): Promise<Buffer> {
  const dice = makeDice(spread(number));
  const pages = [4, 20, 100, undefined][dice(4)];
  const writes = pages === undefined ? 1_500 : 200 + dice(500);
  const edits = pages === undefined ? [] : [checkpointOften(pages)];
  return record({ seed: number, writes, edits });
}
