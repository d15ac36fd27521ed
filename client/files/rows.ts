/** The rows of a file of plants: CSV, JSON Lines or a JSON array. The whole file is in memory. */

import { itemsOf, parseJsonObject } from "../../src/shared/json-text.ts";
import type { Plant, PlantDraft, PlantField } from "../plant-store.ts";
import { type CsvRecord, type FieldName, fieldNames, findSeparator, scanCsvRecord } from "./csv.ts";

export interface Line {
  readonly line: number;
  /** In a JSON array, where several rows may share a line. */
  readonly column?: number | undefined;
}

/** What a row says of a plant, or why that can't be read. */
type Reading<Draft> =
  | { readonly draft: Draft }
  /** `isUnreadable` if nobody can tell where the next row begins, so nothing more is read. */
  | { readonly error: string; readonly isUnreadable?: true };

export type Row<Draft = PlantDraft> = Line & Reading<Draft>;
export type ValidRow<Draft = PlantDraft> = Line & { readonly draft: Draft };
export type RefusedRow = Extract<Row, { error: unknown }> & {
  /** The plant that has the row's id already. */
  readonly here?: Plant;
};

/** Only the fields that the file has. An update keeps the others. */
export type PlantUpdate = Partial<PlantDraft>;

export const formats = ["csv", "jsonl", "json"] as const;
export type Format = (typeof formats)[number];

/** By the file's extension; absent if that says nothing. */
export function formatOf(path: string): Format | undefined {
  const [, extension = ""] = /\.(\w+)$/.exec(path.toLowerCase()) ?? [];
  if (extension === "ndjson") return "jsonl";
  return formats.find((each) => each === extension);
}

/** The file can't be read at all. */
export class PlantFileError extends Error {}

/**
 * Reads the rows, without checking their fields (see `validate`) and without the empty ones. JSON
 * Lines and a JSON array are told apart by the first character. Throws a `PlantFileError` if the
 * file isn't UTF-8, or doesn't start as its format must.
 */
export function readRows(chunks: Iterable<Uint8Array>, format: Format): Generator<Row, void> {
  // Such a file has names.
  return readAll(chunks, format, "create") as Generator<Row, void>;
}

/** The same for an update, whose rows may lack a name if they have an id. */
export function readUpdateRows(
  chunks: Iterable<Uint8Array>,
  format: Format,
): Generator<Row<PlantUpdate>, void> {
  return readAll(chunks, format, "update");
}

type Purpose = "create" | "update";

function* readAll(
  chunks: Iterable<Uint8Array>,
  format: Format,
  purpose: Purpose,
): Generator<Row<PlantUpdate>, void> {
  const text = decode(chunks);
  if (format === "csv") return yield* readCsv(text, purpose);
  const start = /\S.*/.exec(text)?.[0] ?? "";
  if (start.startsWith("[")) return yield* readJsonArray(text.trimEnd());
  if (start.startsWith("{") || start === "") return yield* readJsonLines(text);
  throw new PlantFileError(
    "A JSON file must start with { or [. This one starts with " +
      `${JSON.stringify(start.slice(0, 100).trim())}. Is it CSV?`,
  );
}

const workbook =
  "The file is an Excel workbook or another archive, not text. Save the sheet as CSV (in Excel: " +
  '"CSV UTF-8") and import that.';

/** What people mistake for a file of plants, by its first bytes in Latin-1. */
const binaries: readonly [start: string, message: string][] = [
  ["PK\x03\x04", workbook],
  ["\xd0\xcf\x11\xe0", workbook],
  ["\x1f\x8b", "The file is compressed. Unpack it with gunzip, and import what is in it."],
];
/** With its byte order mark, or without: then one byte of an ASCII character is 0. */
const utf16 = /^(?:[\xfe\xff]|.?\0)/s;
const saveAsUtf8 = 'Save it as UTF-8 (in Excel: "CSV UTF-8"), or convert it with iconv.';

/** Ends in a line feed, which the last line of a file may lack. */
function decode(chunks: Iterable<Uint8Array>): string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  try {
    for (const chunk of chunks) {
      if (text === "") refuseOtherFiles(String.fromCharCode(...chunk.subarray(0, 4)));
      text += decoder.decode(chunk, { stream: true });
    }
    text += decoder.decode();
  } catch (error) {
    if (error instanceof PlantFileError) throw error;
    throw new PlantFileError(`The file is not UTF-8. ${saveAsUtf8}`);
  }
  return text.endsWith("\n") ? text : `${text}\n`;
}

function refuseOtherFiles(start: string): void {
  const found = binaries.find(([bytes]) => start.startsWith(bytes));
  if (found) throw new PlantFileError(found[1]);
  if (utf16.test(start)) throw new PlantFileError(`The file is UTF-16, not UTF-8. ${saveAsUtf8}`);
}

/** Returns where an offset is. Ask for them in ascending order. */
function createLocator(text: string): (offset: number) => Required<Line> {
  let line = 1;
  let start = 0;
  let end = text.indexOf("\n");
  return (offset) => {
    while (end >= 0 && end < offset) {
      line++;
      start = end + 1;
      end = text.indexOf("\n", start);
    }
    return { line, column: offset - start + 1 };
  };
}

function stopReading(reason: string) {
  return { error: `${reason}; nothing after it was read`, isUnreadable: true } as const;
}

function* readCsv(text: string, purpose: Purpose): Generator<Row<PlantUpdate>, void> {
  const locate = createLocator(text);
  // Spreadsheets write an empty row as nothing but separators.
  const headerAt = /^(?:[,;]*\r?\n)*/.exec(text)?.[0].length ?? 0;
  if (headerAt === text.length) {
    throw new PlantFileError(`${headerRules[purpose]} This one is empty.`);
  }
  const separator = findSeparator(text, headerAt);
  const header = scanCsvRecord(text, headerAt, separator);
  const columns = readColumns(header, purpose);
  for (let at = header?.end ?? text.length; at < text.length; ) {
    const { line } = locate(at);
    const record = scanCsvRecord(text, at, separator);
    if (record === undefined || hasLostBoundary(record, columns)) {
      yield { line, ...stopReading("a quote is not closed where it should be") };
      return;
    }
    const source = text.slice(at, record.end);
    at = record.end;
    if (isEmptyRow(record, source)) continue;
    yield { line, ...readCsvPlant(record, columns, purpose) };
  }
}

/** An unclosed quote: where the next record begins is unknown. */
function hasLostBoundary(record: CsvRecord, columns: readonly FieldName[]): boolean {
  const isValid = record.error === undefined && fits(record, columns);
  return !isValid && record.fields.some((field) => field.includes("\n"));
}

/** Spreadsheets may write more columns, which are empty. */
function fits({ fields }: CsvRecord, columns: readonly FieldName[]): boolean {
  return fields.length >= columns.length && fields.slice(columns.length).every((each) => !each);
}

/** A field of quotes is not empty: in a file with one column it is an empty name. */
function isEmptyRow({ fields }: CsvRecord, source: string): boolean {
  return fields.every((field) => field === "") && !source.includes('"');
}

const headerRules: Readonly<Record<Purpose, string>> = {
  create:
    "A CSV file must start with a line that names its columns: name, and optionally tag and id.",
  update:
    "A CSV file must start with a line that names its columns: name, id or both, and optionally tag.",
};

function readColumns(record: CsvRecord | undefined, purpose: Purpose): readonly FieldName[] {
  const header = record?.fields.join(",").slice(0, 100) ?? "";
  const given = record?.fields.map((field) => field.trim().toLowerCase()) ?? [];
  while (given.at(-1) === "") given.pop();
  const extra = given.find(
    (field, index) => !fieldNames.some((each) => each === field) || given.indexOf(field) !== index,
  );
  const isEnough = given.includes("name") || (purpose === "update" && given.includes("id"));
  if (isEnough && extra === undefined) return given as FieldName[];
  let hint = isEnough ? ` Remove the column ${JSON.stringify(extra)}.` : "";
  if (/^\s*[[{]/.test(header)) hint = " Is it JSON?";
  throw new PlantFileError(
    `${headerRules[purpose]} This one starts with ${JSON.stringify(header)}.${hint}`,
  );
}

function readCsvPlant(
  record: CsvRecord,
  columns: readonly FieldName[],
  purpose: Purpose,
): Reading<PlantUpdate> {
  const { error, fields } = record;
  if (error !== undefined) return { error };
  if (!fits(record, columns)) {
    return { error: `expected ${columns.length} fields, found ${fields.length}` };
  }
  const draft: Partial<Record<PlantField, string>> & { id?: bigint } = {};
  // A create has the same key with and without a column of empty tags.
  if (purpose === "create") draft.tag = "";
  for (const [index, column] of columns.entries()) {
    const field = fields[index] ?? "";
    if (column !== "id") draft[column] = field;
    else if (plainInteger.test(field)) draft.id = BigInt(field);
    else if (field !== "") return { error: describeBadId(field) };
  }
  return { draft };
}

const plainInteger = /^(?:0|-?[1-9]\d{0,30})$/;

function describeBadId(id: string): string {
  const rule = "the id must be an integer such as 7 or -7: only digits, no leading zeros";
  const isRounded = /^-?\d[.,]?\d*e\+\d+$/i.test(id);
  return isRounded ? `${rule}; a spreadsheet has rounded this one` : rule;
}

function* readJsonLines(text: string): Generator<Row<PlantUpdate>, void> {
  let line = 0;
  for (const [source] of text.matchAll(/[^\n]*\n/g)) {
    line++;
    if (/\S/.test(source)) yield { line, ...readJsonPlant(source) };
  }
}

function* readJsonArray(text: string): Generator<Row<PlantUpdate>, void> {
  const locate = createLocator(text);
  let end = text.indexOf("[") + 1;
  try {
    for (const { text: item, start } of itemsOf(text)) {
      yield { ...locate(start), ...readJsonPlant(item) };
      end = start + item.length;
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    yield { ...locate(end), ...stopReading("the JSON array is malformed here") };
  }
}

/** Refuses unknown and repeated fields. `validate` checks types and lengths. */
function readJsonPlant(text: string): Reading<PlantUpdate> {
  const object = parseJsonObject(text);
  if (!object) return { error: "this is not a JSON object" };
  const { members, repeatedKeys } = object;
  const unknown = Object.keys(members).filter((key) => !fieldNames.some((each) => each === key));
  const errors = [
    ...unknown.map((key) => `there is no field ${JSON.stringify(key)}`),
    ...repeatedKeys.map((key) => `${key} is given twice`),
  ];
  if (errors.length > 0) return { error: errors.join("; ") };
  return { draft: members };
}
