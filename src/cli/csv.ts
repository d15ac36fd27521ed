/**
 * CSV (RFC 4180), one record at a time. It knows nothing of plants.
 */

export interface CsvRecord {
  readonly fields: readonly string[];
  /** Why the record is malformed, if it is. */
  readonly error: string | undefined;
  /** The offset after its line. */
  readonly end: number;
}

/**
 * The record that starts there; absent if the text ends first. Lines end in CRLF or LF.
 */
export function scanCsvRecord(text: string, start: number): CsvRecord | undefined {
  const fields: string[] = [];
  let error: string | undefined;
  for (let at = start; ; ) {
    const isQuoted = text[at] === '"';
    const closing = isQuoted ? findClosingQuote(text, at + 1) : at - 1;
    const end = closing === -1 && isQuoted ? -1 : findFieldEnd(text, closing + 1);
    if (end === -1) return undefined;
    const isLast = text[end] === "\n";
    const inside = isQuoted ? text.slice(at + 1, closing).replaceAll('""', '"') : "";
    const outside = text.slice(closing + 1, end).replace(isLast ? /\r$/ : "", "");
    if (isQuoted && outside !== "") error ??= "there is text after a closing quote";
    if (!isQuoted && /["\r]/.test(outside)) {
      error ??= "a field with a quote or a carriage return must be quoted";
    }
    fields.push(inside + outside);
    at = end + 1;
    if (isLast) return { fields, error, end: at };
  }
}

/** Two quotes in a row are one quote. */
function findClosingQuote(text: string, start: number): number {
  let at = text.indexOf('"', start);
  while (at !== -1 && text[at + 1] === '"') at = text.indexOf('"', at + 2);
  return at;
}

function findFieldEnd(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (character === "," || character === "\n") return at;
  }
  return -1;
}

export function renderCsvRecord(fields: readonly string[]): string {
  return `${fields.map(renderField).join(",")}\r\n`;
}

function renderField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
