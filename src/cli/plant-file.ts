/** Files of plants, as CSV and as JSON Lines: read line by line, written page by page. */
import type { Plant, PlantDraft } from "../client/plant-store.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { parseJsonObject } from "../json-text.ts";
import { type CsvRecord, renderCsvRecord, scanCsvRecord } from "./csv.ts";
import { showSafely } from "./plant-table.ts";
import { decodeBytes, splitRecords } from "./record-splitter.ts";

export const formats = ["csv", "jsonl"] as const;
export type Format = (typeof formats)[number];

/** A plant to create, or what is wrong with its line. */
export type PlantLine = { readonly line: number } & (
  | { readonly draft: PlantDraft }
  | { readonly fault: string }
);

export const formatFlag = {
  placeholder: formats.join("|"),
  help: "how the file is written",
  fallback: "by the file's ending, else jsonl",
} as const;

/** By the flag, else by how the file's name ends, else JSON Lines. */
export function chooseFormat(flag: string | undefined, path: string): Format {
  if (flag === undefined) return /\.csv$/i.test(path) ? "csv" : "jsonl";
  const format = formats.find((each) => each === flag);
  if (format) return format;
  throw new PlantStoreError(
    "invalid-request",
    `--format must be ${formats.join(" or ")}, not "${flag}".`,
  );
}

/**
 * Blank lines are passed over. Fails with `invalid-request` if CSV has no header that makes sense.
 */
export function readPlantLines(
  chunks: AsyncIterable<Uint8Array>,
  format: Format,
): AsyncGenerator<PlantLine, void, undefined> {
  return format === "csv" ? readCsv(chunks) : readJsonLines(chunks);
}

const fieldNames = ["id", "name", "tag"] as const;
type FieldName = (typeof fieldNames)[number];

export function renderHeader(format: Format): string {
  return format === "csv" ? renderCsvRecord(fieldNames) : "";
}

export function renderPlants(plants: readonly Plant[], format: Format): string {
  const render =
    format === "csv"
      ? ({ id, name, tag }: Plant) => renderCsvRecord([String(id), name, tag])
      : (plant: Plant) => `${renderJsonPlant(plant)}\n`;
  return plants.map(render).join("");
}

/** The id is a JSON number with all its digits. */
export function renderJsonPlant({ id, name, tag }: Plant): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"tag":${JSON.stringify(tag)}}`;
}

const notUtf8 = "the text is not UTF-8";

async function* readCsv(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<PlantLine, void> {
  let columns: readonly FieldName[] | undefined;
  for await (const { line, record } of splitRecords(chunks, scanCsvRecord)) {
    if (record && record.fields.join("") === "" && record.fields.length === 1) continue;
    if (columns === undefined) columns = readColumns(record);
    else if (record === undefined || isAstray(record, columns)) {
      yield { line, fault: `${astray}; nothing behind it was read` };
      return;
    } else yield { line, ...readCsvPlant(record, columns) };
  }
}

const astray = "a quote does not close where it should, or the line is too long";

/**
 * Whether nobody can tell where the next record begins: its lines may be parts of a name, and what
 * looks like plants there would be stored.
 */
function isAstray({ fault, fields }: CsvRecord, columns: readonly FieldName[]): boolean {
  const isSound = fault === undefined && fields.length === columns.length;
  return !isSound && fields.some((field) => field.includes("\n"));
}

function readColumns(record: CsvRecord | undefined): readonly FieldName[] {
  const given = record?.fields.map((field) => field.trim().toLowerCase()) ?? [];
  const isSound =
    given.includes("name") &&
    new Set(given).size === given.length &&
    given.every((field) => fieldNames.some((each) => each === field));
  if (isSound) return given as FieldName[];
  const start = showSafely(JSON.stringify(given.join(",")));
  throw new PlantStoreError(
    "invalid-request",
    "CSV must start with a line that names its columns: name, and tag and id if they are there, " +
      `and no other. It starts with ${start}. If these are JSON Lines, say so with --format jsonl.`,
  );
}

function readCsvPlant(
  record: CsvRecord,
  columns: readonly FieldName[],
): { draft: PlantDraft } | { fault: string } {
  if (record.fault !== undefined) return { fault: record.fault };
  if (record.fields.length !== columns.length) {
    return { fault: `there are ${record.fields.length} fields, not ${columns.length}` };
  }
  const read = (name: FieldName) => decodeBytes(record.fields[columns.indexOf(name)] ?? "");
  try {
    const draft = { name: read("name"), tag: read("tag") };
    const idText = read("id");
    if (idText === "") return { draft };
    const id = readInteger(idText);
    return id === undefined
      ? { fault: "the id must be an integer in its shortest form" }
      : { draft: { ...draft, id } };
  } catch {
    return { fault: notUtf8 };
  }
}

function readInteger(text: string): bigint | undefined {
  return /^(?:0|-?[1-9]\d{0,30})$/.test(text) ? BigInt(text) : undefined;
}

/** A line's text lies between `start` and its end. */
function scanLine(text: string, start: number) {
  const end = text.indexOf("\n", start);
  return end === -1 ? undefined : { line: text.slice(start, end), end: end + 1 };
}

async function* readJsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<PlantLine, void> {
  for await (const { line, record } of splitRecords(chunks, scanLine)) {
    if (record?.line.trim() === "") continue;
    yield { line, ...readJsonPlant(record?.line) };
  }
}

/**
 * The service judges what stands in name and tag; here is told what would not reach it as it is.
 */
function readJsonPlant(bytes: string | undefined): { draft: PlantDraft } | { fault: string } {
  if (bytes === undefined) return { fault: "the line is too long" };
  let text: string;
  try {
    text = decodeBytes(bytes);
  } catch {
    return { fault: notUtf8 };
  }
  const object = parseJsonObject(text);
  if (!object) {
    return { fault: "this is not a JSON object; if the file is CSV, say so with --format csv" };
  }
  const { members, repeatedKeys } = object;
  const unknown = Object.keys(members).find((key) => !fieldNames.some((name) => name === key));
  if (unknown !== undefined) return { fault: `there is no field ${JSON.stringify(unknown)}` };
  if (repeatedKeys.length > 0) return { fault: `the ${repeatedKeys[0]} is there twice` };
  const { id, name, tag = "" } = members;
  if (id !== undefined && typeof id !== "bigint") return { fault: "the id must be an integer" };
  if (typeof name !== "string") return { fault: "the name must be there, and a string" };
  if (typeof tag !== "string") return { fault: "the tag must be a string" };
  return { draft: { name, tag, ...(id !== undefined && { id }) } };
}
