/** Text for people: counts, durations, and text from elsewhere that is safe to show. */

/** Characters that move the cursor, hide or reverse text. Emoji and some scripts need joiners. */
const unsafe = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** One line from elsewhere, with unsafe characters escaped as JSON does it. */
export function showSafely(text: string): string {
  return text.replace(unsafe, (character) =>
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

/** `1,234`, or with a noun `1,234 plants`. */
export function renderCount(count: number, noun?: string): string {
  const number = count.toLocaleString("en");
  return noun === undefined ? number : `${number} ${noun}${count === 1 ? "" : "s"}`;
}

/** `at least 1,200, at most 1,234 plants`, or one number if they are the same. */
export function renderBounds(least: number, most: number, noun: string): string {
  if (least === most) return renderCount(least, noun);
  return `at least ${renderCount(least)}, at most ${renderCount(most, noun)}`;
}

/** `0.4 s`, `34 s`, `2 min 5 s`. */
export function renderDuration(durationMs: number): string {
  const seconds = durationMs / 1_000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
