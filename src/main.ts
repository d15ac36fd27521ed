#!/usr/bin/env bun
/** Arguments in, exit code out. */
import { isTerminal, writeOutput } from "./cli/output.ts";
import { runCommand } from "./cli/run.ts";

const exitCode = await runCommand(process.argv.slice(2), {
  isInteractive: isTerminal(1),
  isWatched: isTerminal(2),
  out: (text) => writeOutput(1, text),
  say: (text) => writeOutput(2, `${text}\n`),
});
process.exit(exitCode);
