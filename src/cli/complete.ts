/**
 * The hidden `plantstore __complete -- WORDS`: what the last word may become. Prints one candidate
 * per line, with a tab and a description, or `:file` for any file name.
 */
import { commandNames, findCommandName, loadCommand } from "./catalog.ts";
import { type Command, type FlagDescription, flagsOf, globalFlags, wordAt } from "./command.ts";
import { firstSentence } from "./help.ts";

type Candidate = readonly [word: string, description: string];

export async function complete(words: readonly string[]): Promise<string> {
  const typed = words.at(-1) ?? "";
  const isHelp = words.length > 1 && words[0] === "help";
  const given = words.slice(isHelp ? 1 : 0, -1);
  const name = findCommandName(given);
  if (name === undefined) return completeName(given, typed, isHelp);
  if (isHelp) return "";
  return completeCall(await loadCommand(name), given.slice(name.split(" ").length), typed);
}

async function completeName(
  given: readonly string[],
  typed: string,
  isHelp: boolean,
): Promise<string> {
  const start = given.map((word) => `${word} `).join("");
  const names = commandNames.filter((name) => name.startsWith(start));
  if (names.length === 0) return "";
  if (typed.startsWith("-")) return render(listFlags(globalFlags), typed);
  const candidates = new Map<string, string>();
  for (const name of names) {
    const [word = "", verb] = name.slice(start.length).split(" ");
    const known = candidates.get(word);
    if (verb === undefined) candidates.set(word, firstSentence(await loadCommand(name)));
    else candidates.set(word, known === undefined ? verb : `${known}, ${verb}`);
  }
  if (start === "" && !isHelp) candidates.set("help", "Show what a command does.");
  return render([...candidates], typed);
}

function completeCall(command: Command, given: readonly string[], typed: string): string {
  const flags = { ...flagsOf(command), ...globalFlags };
  let flag: FlagDescription | undefined;
  let hasEnded = false;
  let count = 0;
  for (const word of given) {
    // bash splits --flag=value into three words.
    if (flag !== undefined) flag = word === "=" ? flag : undefined;
    else if (hasEnded || !word.startsWith("-")) count++;
    else if (word === "--") hasEnded = true;
    else if (flags[word.slice(2)]?.placeholder !== undefined) flag = flags[word.slice(2)];
  }
  if (flag !== undefined) return completeValue(flag.placeholder, typed === "=" ? "" : typed);
  const [, name, value] = /^--([^=]+)=(.*)$/.exec(typed) ?? [];
  if (name !== undefined && !hasEnded) return completeValue(flags[name]?.placeholder, value);
  if (typed.startsWith("-") && !hasEnded) return render(listFlags(flags), typed);
  const word = wordAt(command, count);
  if (word !== undefined || hasEnded) return completeValue(word, typed);
  return render(listFlags(flags), typed);
}

/** `read|write` are two values; `FILE` and `[FILE|-]` are file names. */
function completeValue(placeholder = "", typed = ""): string {
  const parts = placeholder.replace(/^\[|\]$/g, "").split("|");
  if (parts.includes("FILE")) return ":file\n";
  const values = parts.filter((part) => /^[a-z]/.test(part));
  return render(
    values.map((value): Candidate => [value, ""]),
    typed,
  );
}

function listFlags(flags: Readonly<Record<string, FlagDescription>>): Candidate[] {
  return Object.entries(flags).map(([name, { help }]) => [`--${name}`, help]);
}

function render(candidates: readonly Candidate[], typed: string): string {
  return candidates
    .filter(([word]) => word.startsWith(typed))
    .map(([word, text]) => (text === "" ? `${word}\n` : `${word}\t${text}\n`))
    .join("");
}
