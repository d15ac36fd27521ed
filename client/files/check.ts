/** Checks a file of plants as a whole, before anything of it is sent. */
import * as v from "valibot";
import { plantDraftSchema } from "../../src/domain/plant.ts";
import type { RefusedRow, Row, ValidRow } from "./rows.ts";

export interface FileCheck {
  /** How many rows there are, as far as the file can be read. */
  readonly rows: number;
  readonly withId: number;
  readonly withoutId: number;
  readonly invalid: number;
  /** The first of the invalid rows. */
  readonly listed: readonly RefusedRow[];
  /** The first of the valid rows. */
  readonly samples: readonly ValidRow[];
  /** The row after which nothing can be read, if there is one. It is invalid. */
  readonly unreadable: RefusedRow | undefined;
}

interface RowCheckOptions {
  /** How many invalid rows to list. */
  readonly listedMax: number;
  readonly signal: AbortSignal;
}

/** Few enough that a click or Ctrl+C is noticed soon. */
const uninterruptedRows = 10_000;
const samplesMax = 5;

export async function checkRows(
  rows: Iterable<Row>,
  { listedMax, signal }: RowCheckOptions,
): Promise<FileCheck> {
  const counts = { rows: 0, withId: 0, withoutId: 0, invalid: 0 };
  const listed: RefusedRow[] = [];
  const samples: ValidRow[] = [];
  let unreadable: RefusedRow | undefined;
  for (const unchecked of rows) {
    if (counts.rows++ % uninterruptedRows === 0) await new Promise((done) => setTimeout(done, 0));
    signal.throwIfAborted();
    const row = validate(unchecked);
    if ("error" in row) {
      counts.invalid++;
      if (listed.length < listedMax) listed.push(row);
      if (row.isUnreadable) unreadable = row;
    } else {
      if (row.draft.id === undefined) counts.withoutId++;
      else counts.withId++;
      if (samples.length < samplesMax) samples.push(row);
    }
  }
  return { ...counts, listed, samples, unreadable };
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

/** In the order of the file. */
export function sortRows(rows: readonly RefusedRow[]): readonly RefusedRow[] {
  return rows.toSorted((a, b) => a.line - b.line || (a.column ?? 0) - (b.column ?? 0));
}
