/** Suggestions for mistyped commands, flags and environment variables. */

/** The nearest known words: at most two typos away, or one if the word is short. */
export function suggest(typed: string, known: readonly string[]): string[] {
  const ranked = known.map((word) => ({ word, typos: countTypos(typed, word) }));
  const fewest = Math.min(typed.length < 6 ? 1 : 2, ...ranked.map(({ typos }) => typos));
  return ranked.filter(({ typos }) => typos === fewest).map(({ word }) => word);
}

/** `Did you mean a or b? `, or nothing. */
export function renderSuggestion(words: readonly string[]): string {
  return words.length === 0 ? "" : `Did you mean ${words.join(" or ")}? `;
}

/** How many letters were added, left out, replaced or swapped with the next. */
function countTypos(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0;
  for (let row = 1; row <= from.length; row++) {
    const next = [row];
    rows.push(next);
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      next[column] = Math.min(
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        at(row - 1, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
  }
  return at(from.length, to.length);
}
