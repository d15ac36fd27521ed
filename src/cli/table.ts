/** Tables for a terminal, and text that can't harm it. */

/** A longer cell doesn't widen its column; it only shifts the rest of its line. */
const columnWidthMax = 40;

/** Lines with aligned columns. Wide characters take two columns. */
export function renderTable(rows: readonly (readonly string[])[]): string {
  const shown = rows.map((row) => row.map(showSafely));
  const widths: number[] = [];
  for (const row of shown) {
    for (const [column, cell] of row.entries()) {
      const width = Math.min(Bun.stringWidth(cell), columnWidthMax);
      widths[column] = Math.max(widths[column] ?? 0, width);
    }
  }
  const pad = (cell: string, column: number) =>
    cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell)));
  return shown.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}

/** Escapes control characters, which could move the cursor or reverse the text. */
export function showSafely(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
