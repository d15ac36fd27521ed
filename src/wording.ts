/** Numbers as commands and the console show them: counts and durations. */

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
