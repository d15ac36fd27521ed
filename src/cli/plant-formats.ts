/** The formats of plant files: which one, which rows are valid, and how pages are written. */
import * as v from "valibot";
import type { Plant } from "../client/plant-store.ts";
import { choice } from "../config.ts";
import { plantDraftSchema } from "../domain/plant.ts";
import { renderCsvHeader, renderCsvPlant } from "../plant-file/csv.ts";
import { PlantFileError } from "../plant-file/records.ts";
import { type Origin, type Row, readPlants } from "../plant-file/rows.ts";
import { usageError } from "./cli-error.ts";
import { type Call, readFlag } from "./command.ts";
import { showSafely } from "./terminal.ts";

export const formats = ["csv", "jsonl", "json"] as const;
export type Format = (typeof formats)[number];

export const formatFlag = {
  placeholder: formats.join("|"),
  help: "the format of the file",
  fallback: "by the file's extension, else jsonl",
} as const;

/** By the flag, else by the file's extension. */
export function chooseFormat(call: Call, path: string): Format {
  const [, extension] = /\.(csv|json)$/i.exec(path) ?? [];
  const byName = formats.find((each) => each === extension?.toLowerCase()) ?? "jsonl";
  return readFlag(call, "format", choice(...formats)) ?? byName;
}

/**
 * Fields are not checked; see `validate`. Throws a `CliError` if the file isn't UTF-8, or doesn't
 * start as its format must.
 */
export function* readRows(chunks: Iterable<Uint8Array>, format: Format): Generator<Row, void> {
  try {
    yield* readPlants(chunks, format === "csv");
  } catch (error) {
    if (!(error instanceof PlantFileError)) throw error;
    const { message, likelyFormat } = error;
    throw usageError(
      showSafely(message) + (likelyFormat ? ` Then use --format ${likelyFormat}.` : ""),
    );
  }
}

/** The service checks this too; here it is found before anything is sent. */
export function validate(row: Row): Row {
  if ("error" in row) return row;
  const { success, issues } = v.safeParse(plantDraftSchema, row.draft);
  if (success) return row;
  const { draft, ...origin } = row;
  const errors = issues.map((issue) => `${v.getDotPath(issue)} ${issue.message}`);
  return { ...origin, error: errors.join("; ") };
}

/** Rows of one file as a file that can be imported: CSV with its header, JSON as JSON Lines. */
export function renderSources(rows: readonly Origin[]): string {
  const header = rows[0]?.header;
  if (header !== undefined) return header + rows.map(({ source }) => source).join("");
  // Between the parts of an array's element, a line break means nothing.
  return rows.map(({ source }) => `${source.trim().replaceAll(/\r?\n/g, " ")}\n`).join("");
}

/** Writes plants page by page, since nobody knows how many will come. */
export class PlantWriter {
  readonly #format: Format;
  #count = 0;

  constructor(format: Format) {
    this.#format = format;
  }

  header(): string {
    return this.#format === "csv" ? renderCsvHeader() : "";
  }

  page(plants: readonly Plant[]): string {
    const isFirst = this.#count === 0;
    this.#count += plants.length;
    switch (this.#format) {
      case "csv":
        return plants.map(renderCsvPlant).join("");
      case "jsonl":
        return plants.map((plant) => `${renderJsonPlant(plant)}\n`).join("");
      case "json":
        return (isFirst ? "[\n" : ",\n") + plants.map(renderJsonPlant).join(",\n");
    }
  }

  footer(): string {
    if (this.#format !== "json") return "";
    return this.#count === 0 ? "[]\n" : "\n]\n";
  }
}

/** The id is a JSON number with all its digits. */
export function renderJsonPlant({ id, name, tag }: Plant): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"tag":${JSON.stringify(tag)}}`;
}
