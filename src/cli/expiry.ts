/** When a token ends, as a person writes it: after a while (`30d`) or at a date. */
import { usageError } from "./cli-error.ts";

const unitsMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** Fails with `invalid-request` if the text is neither, or names a time that has passed. */
export function readExpiry(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  const date = /^(\d{4}-\d{2}-\d{2})(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2}))?$/.exec(text)?.[1];
  let expiresAtMs = Number.NaN;
  if (count !== undefined && unit !== undefined) {
    expiresAtMs = nowMs + Number(count) * (unitsMs[unit] ?? Number.NaN);
  } else if (date !== undefined && isInCalendar(date)) expiresAtMs = Date.parse(text);
  if (expiresAtMs > nowMs) return expiresAtMs;
  throw usageError(
    `--expires must be a time from now such as 30d, 12h or 90m, or a date to come, not "${text}".`,
  );
}

/** `Date` takes 30 February for 2 March. */
function isInCalendar(date: string): boolean {
  const timeMs = Date.parse(date);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(date);
}
