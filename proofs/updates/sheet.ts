/** A sheet that somebody has exported, edited at random and saved, and what its update should do. */
import type { Plant } from "../../testing/garden-model.ts";

/** From 0 on, below `sides`. */
export type Dice = (sides: number) => number;

type Column = "id" | "name" | "tag";
/** Only the cells of the columns that the file has. */
export type SheetRow = { readonly [Name in Column]?: string };

export interface Sheet {
  readonly format: "csv" | "jsonl";
  readonly rows: readonly SheetRow[];
  readonly text: string;
}

/** Texts, with what a spreadsheet may write for each. */
const spellings: Readonly<Record<string, readonly string[]>> = {
  Fern: [],
  fern: [],
  " Fern": [],
  "Fern, tall": [],
  "Fern; tall": [],
  'a "royal" fern': [],
  "盆栽 🌱": [],
  "2024": [],
  "2025": [],
  "=SUM(1,2)": [],
  "007": ["7", "07"],
  "1E5": ["100000", "1.00E+05"],
  "1.10": ["1.1"],
  "=1+1": ["2"],
  "10%": ["10.00%"],
  "12:30": ["12:30:00 PM"],
  "two\r\nlines": ["two\nlines"],
  "a\tb": ["ab"],
};
const texts = Object.keys(spellings);
const written = texts.flatMap((text) => [text, ...(spellings[text] ?? [])]);
/** What each of them stands for. */
const meanings = new Map(
  texts.flatMap((text) => [text, ...(spellings[text] ?? [])].map((each) => [each, text])),
);

const oneOf = <Item>(dice: Dice, items: readonly Item[]) => items[dice(items.length)] as Item;

export function makePlants(dice: Dice): Plant[] {
  const ids = new Set(Array.from({ length: 10 + dice(50) }, (_, index) => BigInt(index + 1)));
  for (const id of [-7n, 123_456_789_012_345n, 2n ** 60n]) if (dice(2) === 0) ids.add(id);
  return [...ids].map((id) => {
    return { id, name: oneOf(dice, written), tag: dice(2) === 0 ? "" : oneOf(dice, written) };
  });
}

/** Edits what an export wrote. */
export function editSheet(exported: string, format: Sheet["format"], dice: Dice): Sheet {
  let rows: SheetRow[] = format === "csv" ? parseCsv(exported) : parseLines(exported);
  const edit = (text = "") => {
    const chance = dice(8);
    if (chance === 0) return oneOf(dice, written);
    const others = chance < 4 && format === "csv" ? (spellings[text] ?? []) : [];
    return others.length > 0 ? oneOf(dice, others) : text;
  };
  rows = rows.filter(() => dice(8) > 0);
  rows = rows.map(({ id = "", name, tag = "" }) => {
    // An empty tag is edited, too, and a tag may become empty.
    const isEmptied = dice(12) === 0;
    return {
      id: dice(10) === 0 ? "" : id,
      name: edit(name),
      tag: isEmptied ? "" : edit(tag),
    };
  });
  for (let more = dice(6); more > 0; more--) {
    const id = dice(3) > 0 ? "" : String(oneOf(dice, [500n, -500n, 10n ** 17n]) + BigInt(more));
    rows.push({ id, name: oneOf(dice, written), tag: dice(2) === 0 ? "" : oneOf(dice, written) });
  }
  if (dice(2) === 0) rows = shuffle(rows, dice);
  const dropped = oneOf<Column | undefined>(dice, ["id", "name", "tag", ...Array(6)]);
  const columns = shuffle<Column>(["id", "name", "tag"], dice).filter((each) => each !== dropped);
  rows = rows
    .filter(({ id }) => dropped !== "name" || id !== "")
    .map((row) => Object.fromEntries(columns.map((name) => [name, row[name]])));
  if (format === "csv") return { format, rows, text: renderCsv(rows, columns, dice) };
  // A member may be missing in one row only. An id is missing if there is none.
  rows = rows.map(({ id, name, tag }) => ({
    ...(id && { id }),
    ...(name !== undefined && (!id || dice(10) > 0) && { name }),
    ...(tag !== undefined && dice(10) > 0 && { tag }),
  }));
  return { format, rows, text: rows.map(renderLine).join("") };
}

function shuffle<Item>(items: readonly Item[], dice: Dice): Item[] {
  const shuffled: Item[] = [];
  for (const item of items) shuffled.splice(dice(shuffled.length + 1), 0, item);
  return shuffled;
}

function renderLine({ id, ...texts }: SheetRow): string {
  const rest = JSON.stringify(texts);
  if (!id) return `${rest}\n`;
  return `{"id":${id}${rest === "{}" ? "" : `,${rest.slice(1, -1)}`}}\n`;
}

function parseLines(text: string): SheetRow[] {
  const lines = text.trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line.replace(/"id":(-?\d+)/, '"id":"$1"')));
}

/** With the separator, line ends, empty columns and rows of one spreadsheet or another. */
function renderCsv(rows: readonly SheetRow[], columns: readonly Column[], dice: Dice): string {
  const separator = oneOf(dice, [",", ";"]);
  const lineEnd = oneOf(dice, ["\n", "\r\n"]);
  const empty = separator.repeat(dice(3));
  const quote = (text = "") =>
    /[",;\r\n]/.test(text) || dice(9) === 0 ? `"${text.replaceAll('"', '""')}"` : text;
  const names = columns.map((name) => (dice(3) === 0 ? name.toUpperCase() : name));
  const lines = [names, ...rows.map((row) => columns.map((name) => quote(row[name])))];
  const mark = dice(2) === 0 ? "\uFEFF" : "";
  const rest = (separator.repeat(columns.length - 1) + empty + lineEnd).repeat(dice(3));
  return mark + lines.map((line) => line.join(separator) + empty + lineEnd).join("") + rest;
}

/** An export: commas, CRLF and quotes where they are needed. */
function parseCsv(text: string): SheetRow[] {
  const fields = text.slice(1).matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n)/g);
  const lines: string[][] = [[]];
  for (const [, quoted, plain = "", end] of fields) {
    lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end !== ",") lines.push([]);
  }
  const [, ...rows] = lines.slice(0, -1);
  return rows.map(([id = "", name = "", tag = ""]) => ({ id, name, tag }));
}

/** What an update of a garden should come to, found without any index. */
export interface Expected {
  /** By id. */
  readonly changed: Map<bigint, Plant>;
  /** Contents, since ids are assigned. */
  readonly added: {
    readonly id: bigint | undefined;
    readonly name: string;
    readonly tag: string;
  }[];
  unchanged: number;
  refused: number;
}

export function expectUpdate(garden: readonly Plant[], { rows, format }: Sheet): Expected {
  const expected: Expected = { changed: new Map(), added: [], unchanged: 0, refused: 0 };
  const mean = (text: string) => (format === "csv" ? (meanings.get(text) ?? text) : text);
  const isSame = (one: string, other: string | undefined) =>
    other === undefined || mean(one) === mean(other);
  const taken = new Set(rows.flatMap(({ id }) => (id ? [BigInt(id)] : [])));
  const standsFor = ({ name, tag }: SheetRow) => {
    const free = garden.filter((plant) => !taken.has(plant.id));
    const found = free.find((plant) => isSame(plant.name, name) && isSame(plant.tag, tag));
    if (found) taken.add(found.id);
    return found !== undefined;
  };
  const withoutIds = rows.filter(({ id }) => !id);
  const stood = new Set([
    ...withoutIds.filter((row) => row.tag !== undefined && standsFor(row)),
    ...withoutIds.filter((row) => row.tag === undefined && standsFor(row)),
  ]);
  for (const row of rows) {
    const { id = "", name, tag = "" } = row;
    const here = id === "" ? undefined : garden.find((plant) => plant.id === BigInt(id));
    if (here) {
      const wanted = {
        id: here.id,
        name: isSame(here.name, name) ? here.name : (name ?? ""),
        tag: isSame(here.tag, row.tag) ? here.tag : tag,
      };
      if (wanted.name === here.name && wanted.tag === here.tag) expected.unchanged++;
      else expected.changed.set(here.id, wanted);
    } else if (stood.has(row)) expected.unchanged++;
    else if (name === undefined || (format === "csv" && /\d{16}/.test(id))) expected.refused++;
    else expected.added.push({ id: id === "" ? undefined : BigInt(id), name, tag });
  }
  return expected;
}
