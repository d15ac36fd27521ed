/** What a command is, and how its arguments are read and its help is shown. */
import { parseArgs } from "node:util";
import { type SettingName, settings } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";

export interface FlagDescription {
  /** What the value stands for in the help; absent: the flag has no value. */
  readonly placeholder?: string;
  readonly help: string;
}

export interface Command {
  /** The words that call it, such as `token create`. */
  readonly name: string;
  readonly summary: string;
  /** Names of the words that follow, such as `USER`; one in brackets, `[FILE]`, may be left out. */
  readonly words: readonly string[];
  readonly flags: Readonly<Record<string, FlagDescription>>;
  /** Settings that it reads, each a flag and an environment variable. */
  readonly settings: readonly SettingName[];
  readonly examples: readonly string[];
  /** Resolves to the exit code. */
  readonly run: (call: Call) => Promise<number>;
}

export interface Call {
  readonly words: readonly string[];
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
  readonly terminal: Terminal;
}

/** Where a command's output goes. Results to `out`, words for a person to `say`. */
export interface Terminal {
  /** Whether a person reads standard output. */
  readonly isInteractive: boolean;
  /** Whether a person reads standard error. */
  readonly isWatched: boolean;
  /** How many characters a line has. */
  readonly columns?: number;
  out(text: string): void;
  say(text: string): void;
  /** As `say`, but without ending the line, so that it can be drawn again. */
  draw?(text: string): void;
}

/** Fails with `invalid-request` if the arguments do not fit the command. */
export function readCall(command: Command, args: readonly string[], terminal: Terminal): Call {
  const options: Record<string, { type: "string" | "boolean" }> = {};
  for (const [name, flag] of Object.entries(command.flags)) {
    options[name] = { type: flag.placeholder === undefined ? "boolean" : "string" };
  }
  for (const name of command.settings) options[settings[name].flag] = { type: "string" };
  try {
    const { values, positionals, tokens } = parseArgs({
      args: [...args],
      options,
      allowPositionals: true,
      tokens: true,
    });
    const given = tokens.flatMap((token) => (token.kind === "option" ? [token.name] : []));
    const repeated = given.find((name, index) => given.indexOf(name) !== index);
    if (repeated !== undefined) throw new Error(`--${repeated} is given twice`);
    const required = command.words.filter((word) => !word.startsWith("[")).length;
    if (positionals.length < required || positionals.length > command.words.length) {
      throw new Error(
        command.words.length === 0
          ? `"${positionals[0]}" was not expected`
          : `${command.name} takes ${command.words.join(" ")}, and nothing else; ` +
              `${positionals.length} words were given`,
      );
    }
    return { words: positionals, flags: values as Call["flags"], terminal };
  } catch (error) {
    const reason = (error as Error).message
      .split(/\.\s/)[0]
      ?.replace(/\.$/, "")
      .replace(/argument is ambiguous$/, "needs a value; one with a dash is written --flag=-value");
    throw new PlantStoreError(
      "invalid-request",
      `${reason}. See plantstore ${command.name} --help.`,
    );
  }
}

export function textFlag(call: Call, name: string): string | undefined {
  const value = call.flags[name];
  return typeof value === "string" ? value : undefined;
}

export function renderHelp(command: Command): string {
  const flags = [
    ...Object.entries(command.flags).map(([name, flag]) => [
      `--${name}${flag.placeholder === undefined ? "" : ` ${flag.placeholder}`}`,
      flag.help,
    ]),
    ...command.settings.map((name) => {
      const { flag, placeholder, help, environment, fallback } = settings[name];
      return [`--${flag} ${placeholder}`, `${help} [${environment}, ${fallback || "none"}]`];
    }),
    ["--help", "show this help"],
    ["--version", "show the version"],
  ];
  const usage = ["plantstore", command.name, ...command.words, "[flags]"].join(" ");
  return [
    command.summary,
    "",
    `Usage: ${usage}`,
    "",
    "Flags [environment variable, default]:",
    ...alignColumns(flags).map((line) => `  ${line}`),
    "",
    "Examples:",
    ...command.examples.map((example) => `  ${example}`),
    "",
  ].join("\n");
}

/** Rows as lines whose columns stand under each other. */
export function alignColumns(rows: readonly (readonly (string | undefined)[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, (cell ?? "").length);
    }
  }
  return rows.map((row) =>
    row
      .map((cell, column) => (cell ?? "").padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
