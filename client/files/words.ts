/** What commands and the console say about an import, in the same words. */
import { renderCount, renderDuration } from "../../src/wording.ts";
import type { FileCheck } from "./check.ts";
import type { Importer } from "./importer.ts";
import type { Line } from "./rows.ts";

export function renderLine({ line, column }: Line): string {
  return column === undefined ? `line ${line}` : `line ${line}, column ${column}`;
}

/** Why nothing was sent. */
export function describeInvalid({ rows, invalid, unreadable }: FileCheck): string {
  if (unreadable) return `Nothing was sent: the file can't be read past ${renderLine(unreadable)}.`;
  const verb = invalid === 1 ? "is" : "are";
  return `Nothing was sent: ${renderCount(invalid)} of ${renderCount(rows, "row")} ${verb} invalid.`;
}

/** What an import did, in a sentence or more. */
export function describeImport(
  { stored, alreadyThere, unconfirmed }: Importer,
  refused: number,
  elapsedMs: number,
): string {
  const were = (count: number) => (count === 1 ? "was" : "were");
  const parts = [`Added ${renderCount(stored, "plant")} in ${renderDuration(elapsedMs)}.`];
  if (alreadyThere > 0)
    parts.push(`${renderCount(alreadyThere)} ${were(alreadyThere)} already there.`);
  if (refused > 0) parts.push(`${renderCount(refused, "row")} ${were(refused)} refused.`);
  if (unconfirmed > 0) {
    parts.push(
      `${renderCount(unconfirmed)} more may have been added. Import the same file again to find out.`,
    );
  }
  return parts.join(" ");
}
