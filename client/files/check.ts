/** Checks a file of plants as a whole, before anything of it is sent. */
import * as v from "valibot";
import { plantDraftSchema } from "../../src/domain/plant.ts";
import { renderCount } from "../../src/shared/text.ts";
import type { Line, RefusedRow, Row, ValidRow } from "./rows.ts";

/** Both kinds of rows are in the order of the file. */
export interface FileCheck {
  readonly valid: readonly ValidRow[];
  readonly invalid: readonly RefusedRow[];
}

/** Small, so that a click is noticed soon. */
const uninterruptedRows = 10_000;

export async function checkRows(rows: Iterable<Row>, signal?: AbortSignal): Promise<FileCheck> {
  const valid: ValidRow[] = [];
  const invalid: RefusedRow[] = [];
  for (const unchecked of rows) {
    const count = valid.length + invalid.length;
    if (count % uninterruptedRows === 0) await new Promise((done) => setTimeout(done, 0));
    signal?.throwIfAborted();
    const row = validate(unchecked);
    if ("error" in row) invalid.push(row);
    else valid.push(row);
  }
  return { valid, invalid };
}

/** The service checks this too. Here, errors are found before anything is sent. */
export function validate(row: Row): Row {
  if ("error" in row) return row;
  const { success, issues } = v.safeParse(plantDraftSchema, row.draft);
  if (success) return row;
  const { draft, ...line } = row;
  const errors = issues.map((issue) => `${v.getDotPath(issue)} ${issue.message}`);
  return { ...line, error: errors.join("; ") };
}

export function renderLine({ line, column }: Line): string {
  return column === undefined ? `line ${line}` : `line ${line}, column ${column}`;
}

/** Why nothing was sent, and what to do. */
export function describeInvalid({ valid, invalid }: FileCheck): string {
  const last = invalid.at(-1);
  if (last?.isUnreadable) {
    return `Nothing was sent: the file can't be read past ${renderLine(last)}. Fix it and import the file again.`;
  }
  const rows = renderCount(valid.length + invalid.length, "row");
  const [verb, them] = invalid.length === 1 ? ["is", "it"] : ["are", "them"];
  return (
    `Nothing was sent: ${renderCount(invalid.length)} of ${rows} ${verb} invalid. ` +
    `Fix ${them} and import the file again.`
  );
}
