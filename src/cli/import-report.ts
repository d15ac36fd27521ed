/** What both kinds of imports report: rows with their lines, counts for programs, a full storage. */
import { renderLine } from "../../client/files/check.ts";
import { StorageFullError } from "../../client/files/importer.ts";
import type { RefusedRow } from "../../client/files/rows.ts";
import { showSafely } from "../shared/text.ts";
import { CliError, exitCodes } from "./cli-error.ts";
import { type Call, isForPeople } from "./command.ts";

export function listRows({ terminal }: Call, rows: readonly RefusedRow[]): void {
  // An error may quote the file.
  for (const row of rows) terminal.say(`${renderLine(row)}: ${showSafely(row.error)}`);
}

export function printCounts(call: Call, counts: Readonly<Record<string, number>>): void {
  if (!isForPeople(call)) call.terminal.out(`${JSON.stringify(counts)}\n`);
}

/** Returns any other error as it is. */
export function mapStorageFull(error: unknown): unknown {
  if (!(error instanceof StorageFullError)) return error;
  return new CliError(error.message, exitCodes.unavailable);
}
