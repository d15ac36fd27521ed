/** Plants as a table that fits the terminal, and text that can't harm it. */

interface Row {
  readonly id: bigint;
  readonly name: string;
  readonly tag: string;
}

const gap = "  ";
const columnsDefault = 80;
const narrowest = 8;

/** Renders page by page; all pages have the column widths of the first. */
export class PlantTable {
  readonly #columns: number;
  #widths: { id: number; name: number; tag: number } | undefined;

  constructor(columns = columnsDefault) {
    this.#columns = columns;
  }

  render(plants: readonly Row[]): string {
    const rows = plants.map(({ id, name, tag }) => ({
      id: String(id),
      name: showSafely(name),
      tag: showSafely(tag),
    }));
    const header = { id: "ID", name: "NAME", tag: "TAG" };
    if (this.#widths === undefined) rows.unshift(header);
    this.#widths ??= this.#chooseWidths(rows);
    const widths = this.#widths;
    const lines = rows.map(({ id, name, tag }) =>
      [id.padStart(widths.id), fit(name, widths.name), fit(tag, widths.tag)].join(gap).trimEnd(),
    );
    return lines.map((line) => `${line}\n`).join("");
  }

  /** The tag gets up to a third of what the id leaves, and the name gets the rest. */
  #chooseWidths(rows: readonly { id: string; name: string; tag: string }[]) {
    const widest = (field: "id" | "name" | "tag") =>
      rows.reduce((width, row) => Math.max(width, Bun.stringWidth(row[field])), 0);
    const id = widest("id");
    const rest = Math.max(3 * narrowest, this.#columns - id - 2 * gap.length);
    const tag = Math.min(widest("tag"), Math.floor(rest / 3));
    return { id, name: Math.min(widest("name"), rest - tag), tag };
  }
}

/** Escapes control characters, which could move the cursor or reverse the text. */
export function showSafely(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Created when a text is first too long: it takes 3 ms. */
let graphemes: Intl.Segmenter | undefined;

/**
 * Pads or cuts to that many columns; wide characters take two. A cut text ends in an ellipsis.
 */
export function fit(text: string, width: number): string {
  const textWidth = Bun.stringWidth(text);
  if (textWidth <= width) return text + " ".repeat(width - textWidth);
  let kept = "";
  let keptWidth = 0;
  graphemes ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  for (const { segment } of graphemes.segment(text)) {
    const segmentWidth = Bun.stringWidth(segment);
    if (keptWidth + segmentWidth > width - 1) break;
    kept += segment;
    keptWidth += segmentWidth;
  }
  return `${kept}…${" ".repeat(width - keptWidth - 1)}`;
}
