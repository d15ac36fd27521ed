#!/usr/bin/env bun
/** Arguments in, exit code out. */
import { hasColor, isTerminal, writeOutput } from "./cli/output.ts";
import { runCommand } from "./cli/run.ts";

/** As if by SIGPIPE: nobody is left to read the results. */
const unreadExitCode = 141;

const exitCode = await runCommand(process.argv.slice(2), {
  isInteractive: isTerminal(1),
  isWatched: isTerminal(2),
  get hasColor() {
    return hasColor();
  },
  get columns() {
    // A terminal that does not know its width says 0.
    return process.stdout.columns || process.stderr.columns || 80;
  },
  out: (text) => writeOutput(1, text) || process.exit(unreadExitCode),
  say: (text) => writeOutput(2, `${text}\n`),
  draw: (text) => writeOutput(2, text),
});
process.exit(exitCode);
