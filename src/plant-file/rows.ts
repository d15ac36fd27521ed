/** The rows of a file of plants: CSV, JSON Lines or a JSON array. */
import type { PlantDraft } from "../client/plant-store.ts";
import { parseJsonObject } from "../json-text.ts";
import { type CsvRecord, createCsvScanner, type FieldName, fieldNames } from "./csv.ts";
import { createJsonScanner, PlantFileError, refuseCrLines, splitRecords } from "./records.ts";

export interface Line {
  readonly line: number;
  /** In a JSON array, where several rows may share a line. */
  readonly column?: number | undefined;
}

/** A row as it is in the file, to be written to another one. */
export interface Origin extends Line {
  /** With the end of its line. Empty if nothing more is read. */
  readonly source: string;
  /** Of CSV: the line that names the columns. */
  readonly header?: string | undefined;
}

/** A plant to create, or why there is none. */
type Reading =
  | { readonly draft: PlantDraft }
  /** `isEnd` if nobody can tell where the next row begins, so nothing more is read. */
  | { readonly error: string; readonly isEnd?: true };

export type Row = Origin & Reading;
export type ValidRow = Extract<Row, { draft: unknown }>;
export type RefusedRow = Extract<Row, { error: unknown }>;

export const formats = ["csv", "jsonl", "json"] as const;
export type Format = (typeof formats)[number];

/** By the file's extension; absent if that says nothing. */
export function formatOf(path: string): Format | undefined {
  const [, extension = ""] = /\.(\w+)$/.exec(path.toLowerCase()) ?? [];
  if (extension === "tsv") return "csv";
  if (extension === "ndjson") return "jsonl";
  return formats.find((each) => each === extension);
}

/**
 * Reads the rows, without checking their fields (see `validate`) and without the empty ones. JSON
 * Lines and a JSON array are told apart by the first character. Throws a `PlantFileError` if the
 * file isn't UTF-8, or doesn't start as its format must.
 */
export function readPlants(chunks: Iterable<Uint8Array>, format: Format): Generator<Row, void> {
  return format === "csv" ? readCsv(chunks) : readJson(chunks);
}

function stopReading(reason: string) {
  return { error: `${reason}; nothing after it was read`, isEnd: true, source: "" } as const;
}

function* readCsv(chunks: Iterable<Uint8Array>): Generator<Row, void> {
  let columns: readonly FieldName[] | undefined;
  let header: string | undefined;
  for (const { line, source, record } of splitRecords(chunks, createCsvScanner())) {
    if (isEmptyRow(record, source, columns !== undefined)) continue;
    if (columns === undefined) {
      refuseCrLines(source);
      columns = readColumns(record);
      header = source;
    } else if (record === undefined || hasLostBoundary(record, columns)) {
      const reason = "a quote is not closed where it should be, or the line is too long";
      yield { line, ...stopReading(reason) };
      return;
    } else yield Object.assign(readCsvPlant(record, columns), { line, source, header });
  }
  if (columns === undefined) throw new PlantFileError(`${headerRule} This one is empty.`);
}

/** An unclosed quote: where the next record begins is unknown. */
function hasLostBoundary({ error, fields }: CsvRecord, columns: readonly FieldName[]): boolean {
  const isValid = error === undefined && fields.length === columns.length;
  return !isValid && fields.some((field) => field.includes("\n"));
}

/**
 * Spreadsheets write an empty row as nothing but separators. A field of quotes is not empty: in a
 * file with one column it is an empty name.
 */
function isEmptyRow(record: CsvRecord | undefined, source: string, hasHeader: boolean): boolean {
  // Before the header, the separator isn't known yet.
  if (!hasHeader) return /^[,;\t]*\r?\n$/.test(source);
  return record?.fields.every((field) => field === "") === true && !source.includes('"');
}

const headerRule =
  "A CSV file must start with a line that names its columns: name, and optionally tag and id.";

function readColumns(record: CsvRecord | undefined): readonly FieldName[] {
  const header = record?.fields.join(",") ?? "";
  const given = record?.fields.map((field) => field.trim().toLowerCase()) ?? [];
  const unknown = given.find((field) => !fieldNames.some((each) => each === field));
  const repeated = given.find((field, index) => given.indexOf(field) !== index);
  const hasName = given.includes("name");
  if (hasName && unknown === undefined && repeated === undefined) return given as FieldName[];
  let hint = "";
  if (/^\s*[[{]/.test(header)) hint = " Is it JSON?";
  else if (hasName && unknown !== undefined)
    hint = ` Remove the column ${JSON.stringify(unknown)}.`;
  else if (hasName) hint = ` Remove one column ${JSON.stringify(repeated)}.`;
  throw new PlantFileError(`${headerRule} This one starts with ${JSON.stringify(header)}.${hint}`);
}

function readCsvPlant(record: CsvRecord, columns: readonly FieldName[]): Reading {
  if (record.error !== undefined) return { error: record.error };
  if (record.fields.length !== columns.length) {
    return { error: `expected ${columns.length} fields, found ${record.fields.length}` };
  }
  const read = (name: FieldName) => record.fields[columns.indexOf(name)] ?? "";
  const draft = { name: read("name"), tag: read("tag") };
  const id = read("id");
  if (id === "") return { draft };
  if (!/^(?:0|-?[1-9]\d{0,30})$/.test(id)) {
    return { error: "the id must be an integer such as 7 or -7: only digits, no leading zeros" };
  }
  return { draft: { ...draft, id: BigInt(id) } };
}

/** What may follow what in an array. */
const followers: Readonly<Record<string, readonly string[]>> = {
  start: ["["],
  "[": ["a plant", "]"],
  ",": ["a plant"],
  "a plant": [",", "]"],
  "]": [],
};

function* readJson(chunks: Iterable<Uint8Array>): Generator<Row, void> {
  let previous = "start";
  let isFirst = true;
  for (const { line, column, source, record } of splitRecords(chunks, createJsonScanner())) {
    const isArray = record?.isInArray ?? previous !== "start";
    const origin = isArray ? { line, column, source } : { line, source };
    if (isFirst && !isArray && /\S/.test(source)) refuseCrLines(source);
    if (record === undefined) {
      yield { ...origin, ...stopReading("this is not closed, or too long") };
      return;
    }
    if (!/\S/.test(record.text)) continue;
    if (isFirst && !/^\s*[[{]/.test(record.text)) {
      const start = JSON.stringify(record.text.trim().slice(0, 100));
      throw new PlantFileError(
        `A JSON file must start with { or [. This one starts with ${start}. Is it CSV?`,
      );
    }
    isFirst = false;
    if (isArray) {
      const kind = /^[[\],]$/.test(record.text) ? record.text : "a plant";
      const expected = followers[previous] ?? [];
      if (!expected.includes(kind)) {
        const quoted = expected.map((each) => (each.length === 1 ? `"${each}"` : each));
        const either = quoted.join(" or ") || "the end of the file";
        yield { ...origin, ...stopReading(`expected ${either} here`) };
        return;
      }
      previous = kind;
      if (kind !== "a plant") continue;
    }
    yield Object.assign(readJsonPlant(record.text), origin);
  }
  if (!["start", "]"].includes(previous)) {
    const error = "the array that starts here is not closed; is the file cut off?";
    yield { line: 1, error, isEnd: true, source: "" };
  }
}

/** Checks what JSON allows and a plant doesn't. Types and lengths are for others to check. */
function readJsonPlant(text: string): Reading {
  const object = parseJsonObject(text);
  if (!object) return { error: whyNotObject(text) };
  const { members, repeatedKeys } = object;
  for (const key in members) {
    if (key !== "id" && key !== "name" && key !== "tag") {
      return { error: `there is no field ${JSON.stringify(key)}` };
    }
  }
  if (repeatedKeys.length > 0) return { error: `${repeatedKeys[0]} is given twice` };
  return { draft: members as unknown as PlantDraft };
}

/** The runtime's parser says what it stumbled over, but not where. */
function whyNotObject(text: string): string {
  try {
    JSON.parse(text);
    return "this is not a JSON object";
  } catch (error) {
    const reason = (error as Error).message.replace("JSON Parse error: ", "");
    return `this is not a JSON object (${reason})`;
  }
}
