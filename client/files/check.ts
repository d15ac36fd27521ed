/** Checks a file of plants as a whole, before anything of it is sent. */
import * as v from "valibot";
import { type PlantContent, plantDraftSchema, plantIdSchema } from "../../src/domain/plant.ts";
import { renderCount } from "../../src/shared/text.ts";
import type { PlantDraft } from "../plant-store.ts";
import type { Line, PlantUpdate, RefusedRow, Row, ValidRow } from "./rows.ts";

/** Both kinds of rows are in the order of the file. */
export interface FileCheck<Draft = PlantDraft> {
  readonly valid: readonly ValidRow<Draft>[];
  readonly invalid: readonly RefusedRow[];
}

/** Small, so that a click is noticed soon. */
const uninterruptedRows = 10_000;

export function checkRows(rows: Iterable<Row>): Promise<FileCheck> {
  return check(rows, validate);
}

/** Rows of an update. Each must say which plant it is, and no two the same. */
export function checkUpdateRows(
  rows: Iterable<Row<PlantUpdate>>,
  signal?: AbortSignal,
): Promise<FileCheck<PlantUpdate>> {
  const places = new Map<bigint, Line>();
  return check(rows, (unchecked) => refuseRepeated(validateUpdate(unchecked), places), signal);
}

async function check<Draft>(
  rows: Iterable<Row<Draft>>,
  validateRow: (row: Row<Draft>) => Row<Draft>,
  signal?: AbortSignal,
): Promise<FileCheck<Draft>> {
  const valid: ValidRow<Draft>[] = [];
  const invalid: RefusedRow[] = [];
  for (const unchecked of rows) {
    const count = valid.length + invalid.length;
    if (count % uninterruptedRows === 0) await new Promise((done) => setTimeout(done, 0));
    signal?.throwIfAborted();
    const row = validateRow(unchecked);
    if ("error" in row) invalid.push(row);
    else valid.push(row);
  }
  return { valid, invalid };
}

/** The service checks this too. Here, errors are found before anything is sent. */
export function validate(row: Row): Row {
  return findErrors(row, plantDraftSchema);
}

/** As in a create, except that each may be absent. */
const updatedSchemas = {
  name: v.optional(plantDraftSchema.entries.name),
  tag: v.optional(plantDraftSchema.entries.tag.wrapped),
} satisfies Record<keyof PlantContent, unknown>;

const plantUpdateSchema = v.object({ ...updatedSchemas, id: v.optional(plantIdSchema) });

function validateUpdate(row: Row<PlantUpdate>): Row<PlantUpdate> {
  if ("error" in row) return row;
  const { draft, ...line } = row;
  if (draft.id === undefined && draft.name === undefined) {
    return { ...line, error: "there is neither an id nor a name" };
  }
  return findErrors(row, plantUpdateSchema);
}

function findErrors<Draft>(row: Row<Draft>, schema: v.GenericSchema): Row<Draft> {
  if ("error" in row) return row;
  const { success, issues } = v.safeParse(schema, row.draft);
  if (success) return row;
  const { draft, ...line } = row;
  const errors = issues.map((issue) => `${v.getDotPath(issue)} ${issue.message}`);
  return { ...line, error: errors.join("; ") };
}

/** In a spreadsheet, people copy a row to add a plant like another one. */
function refuseRepeated(row: Row<PlantUpdate>, places: Map<bigint, Line>): Row<PlantUpdate> {
  if ("error" in row || row.draft.id === undefined) return row;
  const { draft, ...line } = row;
  const id = BigInt(row.draft.id);
  const earlier = places.get(id);
  if (earlier === undefined) {
    places.set(id, line);
    return row;
  }
  const error = `${renderLine(earlier)} has the id ${id}, too; leave the id empty to add a plant`;
  return { ...line, error };
}

export function renderLine({ line, column }: Line): string {
  return column === undefined ? `line ${line}` : `line ${line}, column ${column}`;
}

/** Why nothing was sent, and what to do. */
export function describeInvalid(
  { valid, invalid }: FileCheck<unknown>,
  again = "import the file again",
): string {
  const last = invalid.at(-1);
  if (last?.isUnreadable) {
    return `Nothing was sent: the file can't be read past ${renderLine(last)}. Fix it and ${again}.`;
  }
  const rows = renderCount(valid.length + invalid.length, "row");
  const [verb, them] = invalid.length === 1 ? ["is", "it"] : ["are", "them"];
  return (
    `Nothing was sent: ${renderCount(invalid.length)} of ${rows} ${verb} invalid. ` +
    `Fix ${them} and ${again}.`
  );
}
