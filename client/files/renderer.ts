/** Renders plants as CSV, JSON Lines or a JSON array, and one of them for people. */
import { renderCount } from "../../src/shared/text.ts";
import type { Plant, Whole } from "../plant-store.ts";
import { renderDraft } from "../wire-text.ts";
import { byteOrderMark, fieldNames, renderCsvRecord } from "./csv.ts";
import type { Format } from "./rows.ts";

/** Spreadsheets read text that starts like this as a formula. */
const formula = /^[=+\-@\t\r]/;

/** Page by page, since nobody knows how many will come. */
export class PlantRenderer {
  readonly #format: Format;
  #count = 0;
  #formulas = 0;

  constructor(format: Format) {
    this.#format = format;
  }

  header(): string {
    return this.#format === "csv" ? byteOrderMark + renderCsvRecord(fieldNames) : "";
  }

  page(plants: readonly Plant[]): string {
    const isFirst = this.#count === 0;
    this.#count += plants.length;
    switch (this.#format) {
      case "csv":
        for (const { id, ...texts } of plants) {
          if (Object.values(texts).some((text) => formula.test(text))) this.#formulas++;
        }
        return plants
          .map((plant) => renderCsvRecord(fieldNames.map((field) => String(plant[field]))))
          .join("");
      case "jsonl":
        return plants.map((plant) => `${renderDraft(plant)}\n`).join("");
      case "json":
        return (isFirst ? "[\n" : ",\n") + plants.map(renderDraft).join(",\n");
    }
  }

  footer(): string {
    if (this.#format !== "json") return "";
    return this.#count === 0 ? "[]\n" : "\n]\n";
  }

  /**
   * What to know before opening the file in a spreadsheet; absent if there is nothing. Texts are
   * written as they are: a prefix against formulas would be part of the name after an import.
   */
  get warning(): string | undefined {
    if (this.#formulas === 0) return undefined;
    const verb = this.#formulas === 1 ? "has" : "have";
    return (
      `${renderCount(this.#formulas, "plant")} ${verb} a name or tag that starts with =, +, - or @. A spreadsheet may run it as a ` +
      "formula: don't open the file in one unless you trust these plants."
    );
  }
}

/** `Fern (shade)`. */
export function renderPlant({ name, tag }: Whole<"name" | "tag">): string {
  return tag === "" ? name : `${name} (${tag})`;
}
