/** Many plants in one request: a create body on each line, and a result on each line. */
import type * as v from "valibot";
import { errorCodes, PlantStoreError } from "../domain/errors.ts";
import type { Created } from "../domain/plants.ts";
import { validateLine } from "./request.ts";

export const linesMax = 10_000;

/** The lines of a body. Fails with `too-large` if there are too many. */
export function splitLines(text: string): readonly string[] {
  // One more, to see whether there are too many, and one for the end of the last line.
  const lines = text.split("\n", linesMax + 2);
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  if (lines.length <= linesMax) return lines;
  throw new PlantStoreError("too-large", `Send at most ${linesMax} lines.`);
}

/** Validates each line when it is taken: all at once would hold up other requests. */
export function* validateLines<Schema extends v.GenericSchema>(
  schema: Schema,
  lines: readonly string[],
): Iterable<v.InferOutput<Schema> | PlantStoreError> {
  for (const line of lines) yield validateLine(schema, line);
}

export function renderResults(results: readonly (Created | PlantStoreError)[]): string {
  return results.map((result) => `${renderResult(result)}\n`).join("");
}

function renderResult(result: Created | PlantStoreError): string {
  if (result instanceof PlantStoreError) {
    const { code, message: detail, errors } = result;
    const { status } = errorCodes[code];
    return JSON.stringify({ status, code, detail, ...(status === 400 && { errors }) });
  }
  return `{"status":201,"id":${result.id}${result.replayed ? ',"replayed":true' : ""}}`;
}
