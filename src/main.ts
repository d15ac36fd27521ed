#!/usr/bin/env bun
/** Arguments in, exit code out. */
import { writeOutput } from "./cli/output.ts";
import { runCommand } from "./cli/run.ts";

const exitCode = await runCommand(process.argv.slice(2), {
  isInteractive: process.stdout.isTTY === true,
  isWatched: process.stderr.isTTY === true,
  out: (text) => writeOutput(1, text),
  say: (text) => writeOutput(2, `${text}\n`),
});
process.exit(exitCode);
