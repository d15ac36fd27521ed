/** CSV (RFC 4180, or with semicolons), one record at a time. */

export const fieldNames = ["id", "name", "tag"] as const;
export type FieldName = (typeof fieldNames)[number];

export interface CsvRecord {
  readonly fields: readonly string[];
  /** Why the record is malformed, if it is. */
  readonly error: string | undefined;
  /** The offset after its line. */
  readonly end: number;
}

type Separator = "," | ";";

/** What is in quotes, where two quotes are one; what is outside; a separator or a line end. */
const fieldPatterns: Readonly<Record<Separator, RegExp>> = {
  ",": /(?:"([^"]*(?:""[^"]*)*)"(?!")|(?!"))([^,\n]*)([,\n])/y,
  ";": /(?:"([^"]*(?:""[^"]*)*)"(?!")|(?!"))([^;\n]*)([;\n])/y,
};

/** A semicolon if only that gives the header, which starts there, a known column; else a comma. */
export function findSeparator(text: string, start: number): Separator {
  const isHeader = (separator: Separator) => {
    const { fields = [] } = scanCsvRecord(text, start, separator) ?? {};
    return fields.some((field) => fieldNames.some((name) => name === field.trim().toLowerCase()));
  };
  return !isHeader(",") && isHeader(";") ? ";" : ",";
}

/** The record that starts there; absent if the text ends first. Lines end in CRLF or LF. */
export function scanCsvRecord(
  text: string,
  start: number,
  separator: Separator,
): CsvRecord | undefined {
  const fields: string[] = [];
  let error: string | undefined;
  const pattern = fieldPatterns[separator];
  pattern.lastIndex = start;
  for (;;) {
    const found = pattern.exec(text);
    if (found === null) return undefined;
    const [, quoted, rest = "", end] = found;
    const isLast = end === "\n";
    const outside = isLast ? rest.replace(/\r$/, "") : rest;
    if (quoted === undefined && /["\r]/.test(outside)) {
      error ??= "a field with a quote or a carriage return must be quoted";
    }
    if (quoted !== undefined && outside !== "") error ??= "there is text after a closing quote";
    fields.push((quoted?.replaceAll('""', '"') ?? "") + outside);
    if (isLast) return { fields, error, end: pattern.lastIndex };
  }
}

/** Without it, spreadsheets read UTF-8 as something else. */
export const byteOrderMark = "\uFEFF";

export function renderCsvRecord(fields: readonly string[]): string {
  return `${fields.map(renderField).join(",")}\r\n`;
}

function renderField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
