/** CSV (RFC 4180), one record at a time, and plants as records. */
import type { Plant } from "../client/plant-store.ts";

export const fieldNames = ["id", "name", "tag"] as const;
export type FieldName = (typeof fieldNames)[number];

export interface CsvRecord {
  readonly fields: readonly string[];
  /** Why the record is malformed, if it is. */
  readonly error: string | undefined;
  /** The offset after its line. */
  readonly end: number;
}

/** What is in quotes, where two quotes are one; what is outside of them; a comma or a line end. */
const fieldPattern = /(?:"([^"]*(?:""[^"]*)*)"(?!")|(?!"))([^,\n]*)([,\n])/y;

/** The record that starts there; absent if the text ends first. Lines end in CRLF or LF. */
export function scanCsvRecord(text: string, start: number): CsvRecord | undefined {
  const fields: string[] = [];
  let error: string | undefined;
  fieldPattern.lastIndex = start;
  for (;;) {
    const found = fieldPattern.exec(text);
    if (found === null) return undefined;
    const [, quoted, rest = "", separator] = found;
    const isLast = separator === "\n";
    const outside = isLast ? rest.replace(/\r$/, "") : rest;
    if (quoted === undefined && /["\r]/.test(outside)) {
      error ??= "a field with a quote or a carriage return must be quoted";
    }
    if (quoted !== undefined && outside !== "") error ??= "there is text after a closing quote";
    fields.push((quoted?.replaceAll('""', '"') ?? "") + outside);
    if (isLast) return { fields, error, end: fieldPattern.lastIndex };
  }
}

export function renderCsvHeader(): string {
  return renderCsvRecord(fieldNames);
}

export function renderCsvPlant({ id, name, tag }: Plant): string {
  return renderCsvRecord([String(id), name, tag]);
}

export function renderCsvRecord(fields: readonly string[]): string {
  return `${fields.map(renderField).join(",")}\r\n`;
}

function renderField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
