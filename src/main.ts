#!/usr/bin/env bun
/** Arguments in, exit code out. */
import { runCommand } from "./cli/run.ts";
import { openTerminal } from "./cli/terminal.ts";

runCommand(process.argv.slice(2), openTerminal()).then((exitCode) => process.exit(exitCode));
