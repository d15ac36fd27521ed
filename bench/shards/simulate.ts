/**
 * The command: simulates gardens over shards from a seed, prints the tables, keeps them in
 * results.md.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { complain, say } from "../output.ts";
import { assumptions } from "./estimate.ts";
import { renderReport, type SimulationOptions } from "./report.ts";

const defaults: SimulationOptions = {
  seed: 1,
  gardens: assumptions.gardens,
  shards: assumptions.shards,
  writes: 100_000,
};

try {
  const options = readOptions();
  const report = renderReport(options);
  say(report);
  // Only the run that the documents cite is kept.
  if (JSON.stringify(options) === JSON.stringify(defaults)) {
    writeFileSync(join(import.meta.dir, "results.md"), report);
  }
} catch (error) {
  complain(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}

function readOptions(): SimulationOptions {
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: String(defaults.seed) },
      gardens: { type: "string", default: String(defaults.gardens) },
      shards: { type: "string", default: String(defaults.shards) },
    },
  });
  return {
    ...defaults,
    seed: readNumber("--seed", values.seed, 0),
    gardens: readNumber("--gardens", values.gardens, 1_000),
    shards: readNumber("--shards", values.shards, 2),
  };
}

function readNumber(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(
    `${flag} takes a whole number of at least ${least}, not ${JSON.stringify(text)}.`,
  );
}
