/** What somebody may have meant who typed a word that is not known. */

/** The known words that are nearest to it, if any is near: one slip for each three letters. */
export function suggest(typed: string, known: readonly string[]): string[] {
  const slipsMax = Math.max(1, Math.floor(typed.length / 3));
  const ranked = known.map((word) => ({ word, slips: countSlips(typed.toLowerCase(), word) }));
  const fewest = Math.min(slipsMax, ...ranked.map(({ slips }) => slips));
  return ranked.filter(({ slips }) => slips === fewest).map(({ word }) => word);
}

/** Variables that are named nearly like one of a prefix that is known, and which that is. */
export function findSlips(
  variables: readonly string[],
  known: readonly string[],
  prefix: string,
): { variable: string; meant: string }[] {
  const endings = known.map((name) => name.slice(prefix.length).toLowerCase());
  return variables
    .filter((variable) => variable.startsWith(prefix) && !known.includes(variable))
    .flatMap((variable) => {
      const [ending] = suggest(variable.slice(prefix.length), endings);
      return ending ? [{ variable, meant: prefix + ending.toUpperCase() }] : [];
    });
}

/** `Did you mean a or b? `, or nothing. */
export function renderSuggestion(words: readonly string[]): string {
  return words.length === 0 ? "" : `Did you mean ${words.join(" or ")}? `;
}

/** How many letters must be added, left out, replaced or swapped with the next. */
function countSlips(from: string, to: string): number {
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
