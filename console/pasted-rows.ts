/**
 * The rows of pasted text: as a spreadsheet copies them, with a tab between columns and quotes where
 * a cell has a line break, or one name per line. Its columns are name and tag, unless its first row
 * names them.
 */
import type { PlantUpdate, Row } from "../client/files/rows.ts";
import { readUpdateRows } from "../client/files/rows.ts";

type Column = "id" | "name" | "tag";
const columnNames: readonly string[] = ["id", "name", "tag"] satisfies Column[];
const usualColumns: readonly Column[] = ["name", "tag"];

/** A cell in quotes, in which two quotes are one, or one without a tab and a line break. */
const cell = /"((?:[^"]|"")*)"(?=[\t\n])|[^\t\n]*/y;

interface Cells {
  readonly line: number;
  cells: readonly string[];
}

export function* readPastedRows(pasted: string): Generator<Row<PlantUpdate>, void> {
  const text = `${pasted.replace(/\r\n?/g, "\n")}\n`;
  if (isCsv(text)) return yield* readUpdateRows([new TextEncoder().encode(text)], "csv");
  const rows = [...readCells(text)];
  removeMarks(rows);
  const header = rows[0] && readHeader(rows[0].cells);
  const columns = header ?? usualColumns;
  for (const { line, cells } of header ? rows.slice(1) : rows) {
    yield { line, ...readPlant(cells, columns) };
  }
}

/** Somebody has copied a CSV file as text. */
function isCsv(text: string): boolean {
  const [first = ""] = text.trimStart().split("\n");
  return [",", ";"].some((mark) => first.includes(mark) && readHeader(first.split(mark)));
}

/** Without the empty rows. */
function* readCells(text: string): Generator<Cells, void> {
  let line = 1;
  let first = 1;
  let cells: string[] = [];
  for (let at = 0; at < text.length; at++) {
    cell.lastIndex = at;
    const [all = "", quoted] = cell.exec(text) ?? [];
    // Quotes around anything else are part of a name.
    const isQuoted = quoted !== undefined && /[\t\n]/.test(quoted);
    cells.push((isQuoted ? quoted.replaceAll('""', '"') : all).trim());
    line += all.split("\n").length - 1;
    at += all.length;
    if (text[at] !== "\n") continue;
    if (cells.some((each) => each !== "")) yield { line: first, cells };
    cells = [];
    first = ++line;
  }
}

/** What lists have before their items: `- Fern`, `• Fern`, `3. Fern`. If all have it, it's no name. */
const mark = /^(?:[-*•–]|\d+[.)])\s+(?=\S)/;

function removeMarks(rows: Cells[]): void {
  if (!rows.every(({ cells }) => cells.length === 1 && mark.test(cells[0] ?? ""))) return;
  for (const row of rows) row.cells = row.cells.map((cell) => cell.replace(mark, ""));
}

/** Which columns the first row names. Absent if it's a plant. */
function readHeader(cells: readonly string[]): Column[] | undefined {
  const names = cells.map((each) => each.trim().toLowerCase());
  const isHeader =
    names.every((name, index) => columnNames.includes(name) && names.indexOf(name) === index) &&
    (names.includes("name") || names.includes("id"));
  return isHeader ? (names as Column[]) : undefined;
}

function readPlant(
  cells: readonly string[],
  columns: readonly Column[],
): { readonly draft: PlantUpdate } | { readonly error: string } {
  const more = cells.slice(columns.length).find((each) => each !== "");
  if (more !== undefined) {
    const columnsText = `${columns.slice(0, -1).join(", ")} and ${columns.at(-1)}`;
    return {
      error:
        `there is more than ${columns.length === 1 ? columns[0] : columnsText}: ` +
        JSON.stringify(more),
    };
  }
  const draft: { id?: bigint; name?: string; tag?: string } = {};
  for (const [index, text] of cells.slice(0, columns.length).entries()) {
    const column = columns[index] as Column;
    if (column !== "id") draft[column] = text;
    else if (/^-?\d{1,19}$/.test(text)) draft.id = BigInt(text);
    else if (text !== "") return { error: "the id must be a whole number" };
  }
  return { draft };
}
