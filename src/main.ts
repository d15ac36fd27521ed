#!/usr/bin/env bun
/** Arguments in, exit code out. */
import { writeSync } from "node:fs";
import { runCommand } from "./cli/run.ts";

const exitCode = await runCommand(process.argv.slice(2), {
  isInteractive: process.stdout.isTTY === true,
  out: (text) => void writeSync(1, text),
  say: (text) => void writeSync(2, `${text}\n`),
});
process.exit(exitCode);
