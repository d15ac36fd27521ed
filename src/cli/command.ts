/** What a command is, and how its arguments are parsed. */
import { parseArgs } from "node:util";
import { type Parser, quoteText, type SettingName, settings } from "../shared/config.ts";
import { showSafely } from "../shared/text.ts";
import { CliError, usageError } from "./cli-error.ts";
import { renderSuggestion, suggest } from "./suggestion.ts";
import type { Terminal } from "./terminal.ts";

interface FlagDescription {
  /**
   * The value, for the help: `FILE` is a file name, `read|write` one of the two. Absent:
   * the flag takes no value.
   */
  readonly placeholder?: string;
  readonly help: string;
  /** The default, for the help. */
  readonly fallback?: string;
  /** The environment variable that sets it instead. */
  readonly environment?: string;
}

export interface Command {
  /** Such as `token create`. */
  readonly name: string;
  readonly summary: string;
  /**
   * The words that follow, such as `USER`, written like a placeholder. `[USER]` is optional,
   * `ID...` is one or more, and `[ID...]` any number.
   */
  readonly words: readonly string[];
  readonly flags: Readonly<Record<string, FlagDescription>>;
  /** Settings that it reads; each is a flag and an environment variable. */
  readonly settings: readonly SettingName[];
  /** Further environment variables that it reads, and what they are. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Lines to paste into a shell. */
  readonly examples: readonly string[];
  /** Resolves to the exit code, if it isn't 0. Most failures are thrown as a `CliError`. */
  readonly run: (call: Call) => Promise<number | undefined>;
}

export interface Call {
  readonly words: readonly string[];
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
  readonly terminal: Terminal;
}

/** Throws a `CliError` if the arguments don't fit the command. */
export function readCall(command: Command, args: readonly string[], terminal: Terminal): Call {
  const options = Object.fromEntries(
    Object.entries(flagsOf(command)).map(([name, { placeholder }]) => [
      name,
      { type: placeholder === undefined ? "boolean" : "string" } as const,
    ]),
  );
  // Not strict, because its error messages aren't in our words.
  const { positionals, tokens } = parseArgs({
    args: [...args],
    options,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const flags: Record<string, string | boolean> = {};
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    checkFlag(command, token, args);
    flags[token.name] = token.value ?? true;
  }
  checkWords(command, positionals);
  return { words: positionals, flags, terminal };
}

interface FlagToken {
  readonly name: string;
  readonly value: string | undefined;
  /** Whether the value is in the same argument: `--name=value`. */
  readonly inlineValue: boolean | undefined;
  /** Of its argument. */
  readonly index: number;
}

function checkFlag(command: Command, token: FlagToken, args: readonly string[]): void {
  const { name, value, inlineValue, index } = token;
  const flags = flagsOf(command);
  const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
  if (!flag) throw refuseFlag(command, args[index] ?? "");
  if (flag.placeholder === undefined) {
    if (value !== undefined) throw refuse(command, `--${name} takes no value.`);
    return;
  }
  const needsValue = `--${name} needs a value.`;
  if (value === undefined) throw refuse(command, needsValue);
  // What follows may just as well be the next flag.
  if (inlineValue || !/^-./.test(value)) return;
  const shown = showSafely(value);
  throw refuse(command, `${needsValue} If that is ${shown}, write --${name}=${shown}.`);
}

function checkWords(command: Command, words: readonly string[]): void {
  const missing = command.words.slice(words.length).find((word) => !word.startsWith("["));
  const usage = `Usage: ${renderUsage(command)}.`;
  if (missing !== undefined) {
    throw refuse(command, `${missing.replace("...", "")} is missing. ${usage}`);
  }
  const surplus = words[command.words.length];
  if (surplus === undefined || command.words.at(-1)?.includes("...")) return;
  const hint = command.words.length > 0 ? " Put several words of one value in quotes." : "";
  throw refuse(command, `${JSON.stringify(surplus)} is unexpected.${hint} ${usage}`);
}

function refuse(command: Command, reason: string): CliError {
  return usageError(`${reason} See plantstore ${command.name} --help.`);
}

/** Says which flag may have been meant. */
function refuseFlag(command: Command, argument: string): CliError {
  const names = Object.keys({ ...flagsOf(command), ...globalFlags });
  const given = argument.replace(/=.*/s, "");
  const near = suggest(given.replace(/^-+/, ""), names).map((name) => `--${name}`);
  const hint = renderSuggestion(near) || "Put -- before a word that starts with a dash.";
  return refuse(command, `There is no flag ${given}. ${hint}`.trimEnd());
}

/** Flags of every command. */
export const globalFlags: Readonly<Record<string, FlagDescription>> = {
  help: { help: "show this help" },
  version: { help: "show the version" },
};

/** Its flags, including its settings' flags. */
export function flagsOf(command: Command): Readonly<Record<string, FlagDescription>> {
  const shared = command.settings.map((name) => [settings[name].flag, settings[name]] as const);
  return { ...command.flags, ...Object.fromEntries(shared) };
}

export function renderUsage(command: Command): string {
  return ["plantstore", command.name, ...command.words, "[flags]"].join(" ");
}

export const jsonFlag: FlagDescription = { help: "print JSON instead of text" };

/** Whether to print text rather than JSON. `token` prints text in a pipe, too. */
export function isForPeople({ flags, terminal }: Call): boolean {
  return terminal.isStdoutTty && flags.json !== true;
}

/** Prints text for people, and JSON for programs. */
export function printResult(call: Call, text: string, json: string): void {
  call.terminal.out(`${isForPeople(call) ? text : json}\n`);
}

/** Returns after a yes, or with `--yes`. Throws a `CliError` otherwise. */
export function confirmDeletion(call: Call, which: string): Promise<void> {
  return confirm(call, `delete ${which}`, "Nothing was deleted.");
}

/** The same for any step. `undone` says that it wasn't taken. */
export async function confirm(
  { flags, terminal }: Call,
  step: string,
  undone: string,
): Promise<void> {
  if (flags.yes === true) return;
  const question = `${step[0]?.toUpperCase()}${step.slice(1)}?`;
  const isConfirmed = await terminal.confirm?.(question);
  if (isConfirmed === undefined) {
    throw usageError(`${undone} To ${step} without being asked, add --yes.`);
  }
  if (!isConfirmed) throw new CliError(undone);
}

export function textFlag(call: Call, name: string): string | undefined {
  const value = call.flags[name];
  return typeof value === "string" ? value : undefined;
}

/** Absent if it isn't given. Throws a `CliError` if it isn't valid. */
export function readFlag<Value>(
  call: Call,
  name: string,
  parser: Parser<Value>,
): Value | undefined {
  const text = textFlag(call, name);
  return text === undefined ? undefined : parseText(`--${name}`, text, parser);
}

/** `source` is a flag or a word. Throws a `CliError` that names it if the text isn't valid. */
export function parseText<Value>(
  source: string,
  text: string,
  { parse, expected }: Parser<Value>,
): Value {
  const value = parse(text);
  if (value !== undefined) return value;
  throw usageError(`${source} must be ${expected}, not ${quoteText(text)}.`);
}
