#!/usr/bin/env bun
/** Arguments in, exit code out. */
import { runCommand } from "./cli/run.ts";
import { openTerminal } from "./cli/terminal.ts";

// No await out here: the bundle (scripts/bundle.ts) is CommonJS, which has none.
runCommand(process.argv.slice(2), openTerminal()).then((exitCode) => process.exit(exitCode));
