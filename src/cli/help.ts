/**
 * Renders the help from how commands describe themselves, within the width of the terminal.
 */
import { type Command, flagsOf, renderUsage, type Terminal } from "./command.ts";

type Row = readonly [term: string, text: string];

/** Longer lines are hard to read. Also the width for a pipe. */
const columnsMax = 100;
/** The text of a longer term starts on the next line. */
const termColumnsMax = 30;

/** On a narrower screen the terminal wraps the lines. */
const textColumnsMin = 24;

/** The help of one command. */
export function renderHelp(command: Command, terminal: Terminal): string {
  const flags = Object.entries(flagsOf(command)).map(([name, flag]): Row => {
    const { placeholder, help, environment, fallback } = flag;
    const term = placeholder === undefined ? `--${name}` : `--${name} ${placeholder}`;
    const notes = [environment, fallback && `default ${fallback}`].filter(Boolean).join(", ");
    return [term, notes === "" ? help : `${help} [${notes}]`];
  });
  const always: readonly Row[] = [
    ["--help", "show this help"],
    ["--version", "show the version"],
  ];
  const variables = Object.entries(command.variables ?? {});
  return join([
    wrap(command.summary, columnsOf(terminal)),
    [`${bolden("Usage:", terminal)} ${renderUsage(command)}`],
    section("Flags:", renderRows([...flags, ...always], terminal), terminal),
    variables.length === 0
      ? []
      : section("Environment:", renderRows(variables, terminal), terminal),
    section("Examples:", command.examples, terminal),
  ]);
}

/** All commands by section, each with the first sentence of its summary. */
export function renderOverview(
  groups: Readonly<Record<string, readonly Command[]>>,
  terminal: Terminal,
): string {
  const rowsOf = (commands: readonly Command[]) =>
    commands.map(({ name, words, summary }): Row => {
      const [sentence = summary] = summary.split(/(?<=\.)\s/);
      return [[name, ...words].join(" "), sentence];
    });
  const width = termWidth(Object.values(groups).flatMap(rowsOf));
  return join([
    ["Plant Store keeps plants behind an HTTP API."],
    [`${bolden("Usage:", terminal)} plantstore COMMAND [flags]`],
    ...Object.entries(groups).map(([title, commands]) =>
      section(`${title}:`, renderRows(rowsOf(commands), terminal, width), terminal),
    ),
    wrap(
      "plantstore help COMMAND, or COMMAND --help, shows its flags and examples. " +
        "--version shows the version.",
      columnsOf(terminal),
    ),
  ]);
}

/** Blocks of lines with an empty line between them. */
function join(blocks: readonly (readonly string[])[]): string {
  const filled = blocks.filter((lines) => lines.length > 0);
  return filled.map((lines) => `${lines.join("\n")}\n`).join("\n");
}

function section(title: string, lines: readonly string[], terminal: Terminal): string[] {
  return [bolden(title, terminal), ...lines.map((line) => `  ${line}`.trimEnd())];
}

function renderRows(rows: readonly Row[], terminal: Terminal, width = termWidth(rows)): string[] {
  const column = " ".repeat(width + 2);
  return rows.flatMap(([term, text]) => {
    const lines = wrap(text, Math.max(textColumnsMin, columnsOf(terminal) - 2 - column.length));
    const isLong = term.length > width;
    const [first = "", ...others] = isLong ? [term, ...lines] : lines;
    return [
      isLong ? first : term.padEnd(column.length) + first,
      ...others.map((line) => column + line),
    ];
  });
}

function termWidth(rows: readonly Row[]): number {
  return Math.max(...rows.map(([{ length }]) => (length > termColumnsMax ? 0 : length)));
}

/** Wraps between words; a word that is too long stays whole. */
function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function columnsOf({ isInteractive, columns }: Terminal): number {
  return isInteractive ? Math.min(columns ?? columnsMax, columnsMax) : columnsMax;
}

function bolden(text: string, { hasColor }: Terminal): string {
  return hasColor === true ? `\x1b[1m${text}\x1b[0m` : text;
}
