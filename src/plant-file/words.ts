/** What commands and console say in the same words: counts, durations, and what an import did. */
import type { FileCheck } from "./check.ts";
import type { Importer } from "./importer.ts";
import type { Line } from "./rows.ts";

/** `1,234`, or with a noun `1,234 plants`. */
export function renderCount(count: number, noun?: string): string {
  const number = count.toLocaleString("en");
  return noun === undefined ? number : `${number} ${noun}${count === 1 ? "" : "s"}`;
}

/** `0.4 s`, `34 s`, `2 min 5 s`. */
export function renderDuration(durationMs: number): string {
  const seconds = durationMs / 1_000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export function renderLine({ line, column }: Line): string {
  return column === undefined ? `line ${line}` : `line ${line}, column ${column}`;
}

/** Why nothing was sent. */
export function describeInvalid({ rows, invalid, end }: FileCheck): string {
  if (end) return `Nothing was sent: the file can't be read past ${renderLine(end)}.`;
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
