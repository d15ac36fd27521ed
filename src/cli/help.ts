/** Renders the help from how commands describe themselves. */
import { type Command, flagsOf, globalFlags, renderUsage } from "./command.ts";

type Row = readonly [term: string, text: string];

const lineColumns = 80;
/** Where texts start. The text of a longer term starts on the next line. */
const textColumn = 28;

/** The help of one command. */
export function renderHelp(command: Command): string {
  const flags = Object.entries({ ...flagsOf(command), ...globalFlags }).map(([name, flag]): Row => {
    const { placeholder, help, environment, fallback } = flag;
    const term = placeholder === undefined ? `--${name}` : `--${name} ${placeholder}`;
    const notes = [environment, fallback && `default ${fallback}`].filter(Boolean).join(", ");
    return [term, notes === "" ? help : `${help} [${notes}]`];
  });
  const variables = Object.entries(command.variables ?? {});
  return join([
    wrap(command.summary, lineColumns),
    [`Usage: ${renderUsage(command)}`],
    section("Flags:", renderRows(flags)),
    variables.length === 0 ? [] : section("Environment:", renderRows(variables)),
    section("Examples:", command.examples),
  ]);
}

/** All commands by section, each with the first sentence of its summary. */
export function renderOverview(groups: Readonly<Record<string, readonly Command[]>>): string {
  const toRow = (command: Command): Row => [
    [command.name, ...command.words].join(" "),
    firstSentence(command),
  ];
  return join([
    ["Plant Store keeps plants behind an HTTP API."],
    ["Usage: plantstore COMMAND [flags]"],
    ...Object.entries(groups).map(([title, commands]) =>
      section(`${title}:`, renderRows(commands.map(toRow))),
    ),
    ["plantstore help COMMAND, or COMMAND --help, shows its flags and examples."],
  ]);
}

function firstSentence({ summary }: Command): string {
  return summary.split(/(?<=\.)\s/)[0] ?? summary;
}

/** Blocks of lines with an empty line between them. */
function join(blocks: readonly (readonly string[])[]): string {
  const filled = blocks.filter((lines) => lines.length > 0);
  return filled.map((lines) => `${lines.join("\n")}\n`).join("\n");
}

function section(title: string, lines: readonly string[]): string[] {
  return [title, ...lines.map((line) => `  ${line}`)];
}

function renderRows(rows: readonly Row[]): string[] {
  const indent = " ".repeat(textColumn - 2);
  return rows.flatMap(([term, text]) => {
    const lines = wrap(text, lineColumns - textColumn).map((line) => indent + line);
    if (term.length > indent.length - 2) return [term, ...lines];
    const [first = "", ...others] = lines;
    return [term + first.slice(term.length), ...others];
  });
}

/** Wraps between words; a word that is too long stays whole. */
function wrap(text: string, columns: number): string[] {
  return Bun.wrapAnsi(text, columns).split("\n");
}
