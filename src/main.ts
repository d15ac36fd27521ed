#!/usr/bin/env bun
/** Arguments in, exit code out. */
import { drawMessage, hasColor, isTerminal, writeMessage, writeResult } from "./cli/output.ts";
import { runCommand } from "./cli/run.ts";

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
  out: (text) => writeResult(1, text, "standard output"),
  say: (text) => writeMessage(`${text}\n`),
  ...(drawMessage && { draw: drawMessage }),
});
process.exit(exitCode);
