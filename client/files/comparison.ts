/**
 * Compares the rows of a file with the plants of a garden: what is new, what changes, what is as it
 * is, and what is refused. The plants come a page at a time and aren't kept, except those that
 * change, so it holds no more than the file has.
 */
import { contentFields } from "../../src/domain/plant.ts";
import { renderCount } from "../../src/shared/text.ts";
import type { Plant, PlantDraft, PlantField } from "../plant-store.ts";
import { renderPlant } from "./renderer.ts";
import type { Format, PlantUpdate, RefusedRow, ValidRow } from "./rows.ts";
import { cellKey, dayKeys, dayKeysOfDate, isComputable, isSameCell } from "./spreadsheet.ts";

type UpdateRow = ValidRow<PlantUpdate>;
type Content = Readonly<Record<PlantField, string>>;

/** A row that makes another plant of the one that is here. */
export interface Change {
  readonly row: UpdateRow;
  /** The plant as it was listed. */
  readonly before: Plant;
  /** Only the fields that change. */
  readonly set: Partial<Content>;
  /** Whether a spreadsheet may have made it: of a text that looks like a number, a date, a formula. */
  readonly isDoubtful: boolean;
}

/** Spreadsheets round integers with more. */
const idDigitsMax = 15;

export class Comparison {
  /** Complete once `finish` was called, like the others: in the order of the file. */
  readonly added: ValidRow[] = [];
  /** Doubtful ones first. */
  readonly changes: Change[] = [];
  readonly refused: RefusedRow[] = [];
  /** Rows whose plants are as the file has them. */
  unchanged = 0;
  /** Rows that no plant has been found for, by their ids. */
  readonly #byId = new Map<bigint, UpdateRow>();
  /**
   * Rows without ids, by name and tag, or by name if they have no tag. The last one first. A row with
   * a date has several keys, so it may be here after its plant was found.
   */
  readonly #byContent = new Map<string, UpdateRow[]>();
  /** Rows without ids that a plant was found for. */
  readonly #found = new Set<UpdateRow>();
  readonly #rows: readonly UpdateRow[];
  /** Only CSV comes from spreadsheets. */
  readonly #isSheet: boolean;

  /** The rows are checked: no two have the same id. */
  constructor(rows: readonly UpdateRow[], format: Format) {
    this.#rows = rows;
    this.#isSheet = format === "csv";
    for (let index = rows.length - 1; index >= 0; index--) {
      const row = rows[index] as UpdateRow;
      const { id, name = "", tag } = row.draft;
      if (id !== undefined) {
        this.#byId.set(BigInt(id), row);
        continue;
      }
      for (const key of this.#keysOf(name, tag, dayKeysOfDate)) {
        const others = this.#byContent.get(key);
        if (others) others.push(row);
        else this.#byContent.set(key, [row]);
      }
    }
  }

  /** Rows that will add a plant with an id that the file chose. */
  get addedWithIds(): number {
    return this.added.filter(({ draft }) => draft.id !== undefined).length;
  }

  /** Rows without ids that are plants of the garden, in no order. They are `unchanged`, too. */
  get alreadyHere(): readonly UpdateRow[] {
    return [...this.#found];
  }

  get doubtful(): number {
    return this.changes.filter(({ isDoubtful }) => isDoubtful).length;
  }

  get rows(): number {
    return this.#rows.length;
  }

  /** Takes each plant of the garden once. */
  take(plants: readonly Plant[]): void {
    for (const plant of plants) {
      const row = this.#byId.get(plant.id);
      if (row) {
        this.#byId.delete(plant.id);
        this.#compare(row, plant);
      } else if (this.#byContent.size > 0 && this.#standFor(plant)) this.unchanged++;
    }
  }

  /** After the last plant. */
  finish(): void {
    const left = new Set([...this.#byId.values(), ...[...this.#byContent.values()].flat()]);
    for (const row of this.#rows) if (left.has(row) && !this.#found.has(row)) this.#add(row);
    this.changes.sort(
      (one, other) =>
        Number(other.isDoubtful) - Number(one.isDoubtful) ||
        one.row.line - other.row.line ||
        (one.row.column ?? 0) - (other.row.column ?? 0),
    );
  }

  #compare(row: UpdateRow, before: Plant): void {
    const set: { -readonly [Field in PlantField]?: string } = {};
    let isDoubtful = false;
    for (const field of contentFields) {
      const wanted = row.draft[field];
      if (wanted === undefined || this.#isSame(before[field], wanted)) continue;
      set[field] = wanted;
      isDoubtful ||= this.#isSheet && isComputable(before[field]);
    }
    if (Object.keys(set).length === 0) this.unchanged++;
    else this.changes.push({ row, before, set, isDoubtful });
  }

  #isSame(before: string, wanted: string): boolean {
    return this.#isSheet ? isSameCell(before, wanted) : before === wanted;
  }

  /**
   * Takes a row without an id off the list, if the plant is what it says. Rows with a tag come first:
   * only a plant with that tag is theirs.
   */
  #standFor({ name, tag }: Content): boolean {
    const withTag = this.#keysOf(name, tag, dayKeys);
    const withoutTag = this.#keysOf(name, undefined, dayKeys);
    for (const key of [...withTag, ...withoutTag]) {
      const row = this.#takeRow(key);
      if (!row) continue;
      this.#found.add(row);
      return true;
    }
    return false;
  }

  #takeRow(key: string): UpdateRow | undefined {
    const rows = this.#byContent.get(key);
    let row = rows?.pop();
    while (row && this.#found.has(row)) row = rows?.pop();
    if (rows?.length === 0) this.#byContent.delete(key);
    return row;
  }

  /** One key, and more if the name or the tag may be a day. */
  #keysOf(
    name: string,
    tag: string | undefined,
    daysOf: (text: string) => readonly string[],
  ): string[] {
    if (!this.#isSheet) return [JSON.stringify([name, tag])];
    const keysOf = (text: string) => [cellKey(text), ...daysOf(text)];
    const tags = tag === undefined ? [undefined] : keysOf(tag);
    return keysOf(name).flatMap((each) => tags.map((other) => JSON.stringify([each, other])));
  }

  /** Of a row that no plant was found for. */
  #add(row: UpdateRow): void {
    const { draft, ...line } = row;
    const { id, name } = draft;
    if (name === undefined) {
      const error = `there is no plant ${id}, and the row has no name to add it with`;
      this.refused.push({ ...line, error });
    } else if (this.#isSheet && id !== undefined && countDigits(id) > idDigitsMax) {
      const error =
        `there is no plant ${id}. A spreadsheet may have changed its last digits: it keeps ` +
        `${idDigitsMax}`;
      this.refused.push({ ...line, error });
    } else this.added.push({ ...line, draft: { ...draft, name } satisfies PlantDraft });
  }
}

function countDigits(id: bigint | number): number {
  return String(id).replace("-", "").length;
}

/** `7: Fern → Boston fern, tag shade → hall`. */
export function renderChange({ before, set }: Change): string {
  const { name, ...others } = set;
  const texts = [name === undefined ? before.name : renderStep(before.name, name)];
  for (const field of contentFields) {
    if (field === "name") continue;
    const after = others[field];
    if (after !== undefined) texts.push(`${field} ${renderStep(before[field], after)}`);
  }
  return `${before.id}: ${texts.join(", ")}`;
}

function renderStep(before: string, after: string): string {
  return `${before || "(none)"} → ${after || "(none)"}`;
}

/** What an update would do: `97 rows: 3 new, 12 change, 82 as they are.` */
export function describeComparison(comparison: Comparison): string {
  const { rows, changes } = comparison;
  const { added, unchanged, refused } = describeCounts(comparison);
  const changed = `${renderCount(changes.length)} ${changes.length === 1 ? "changes" : "change"}`;
  const counts = [added, changed, unchanged];
  if (comparison.refused.length > 0) counts.push(refused);
  const parts = [`${renderCount(rows, "row")}: ${counts.join(", ")}.`];
  return [...parts, ...describeDoubts(comparison)].join(" ");
}

/** The same before somebody has said whether plants may be changed, without what there is none of. */
export function describeDifferences(comparison: Comparison): string {
  const { rows, changes } = comparison;
  const { added, unchanged, refused } = describeCounts(comparison);
  const differ = changes.length === 1 ? "differs" : "differ";
  const counts = [
    comparison.added.length > comparison.addedWithIds && added,
    changes.length > 0 && `${renderCount(changes.length)} ${differ} from what is here`,
    comparison.unchanged > 0 && unchanged,
    comparison.refused.length > 0 && refused,
  ].filter((count) => count !== false);
  const sum = counts.length === 0 ? "" : `: ${counts.join(", ")}`;
  return [`${renderCount(rows, "row")}${sum}.`, ...describeDoubts(comparison)].join(" ");
}

function describeCounts({ added, addedWithIds, unchanged, refused }: Comparison) {
  return {
    added: `${renderCount(added.length - addedWithIds)} new`,
    unchanged: `${renderCount(unchanged)} as ${unchanged === 1 ? "it is" : "they are"}`,
    refused: `${renderCount(refused.length)} refused`,
  };
}

function describeDoubts({ addedWithIds, doubtful }: Comparison): string[] {
  const parts: string[] = [];
  if (addedWithIds > 0) {
    const theirs = addedWithIds === 1 ? "an id of its own" : "ids of their own";
    parts.push(`${renderCount(addedWithIds)} new with ${theirs}: deleted since the export?`);
  }
  if (doubtful > 0) {
    const are = doubtful === 1 ? "is" : "are";
    parts.push(
      `${renderCount(doubtful)} of the changes ${are} of a number, a date or a formula: ` +
        "yours, or the spreadsheet's?",
    );
  }
  return parts;
}

/** The plant that a change makes. */
export function renderWanted({ before, set }: Change): string {
  return renderPlant({ ...before, ...set });
}
