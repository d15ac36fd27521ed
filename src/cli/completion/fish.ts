/** The completion script for fish, from 3.0 on. */
import type { Command } from "../command.ts";
import { completeFlags, readPlaceholder, wordsByPlace } from "./places.ts";

export function renderFishCompletion(commands: readonly Command[]): string {
  const words = [...wordsByPlace(commands)].flatMap(([place, options]) =>
    options.map(({ word, text }) => complete(`at ${place}`, `-a ${word}`, text)),
  );
  const rest = commands.flatMap((command) => [
    ...completeFlagsWhen(`within ${command.name}`, command),
    ...command.words.flatMap((word) => completeWord(command, word)),
  ]);
  return `${[head, ...words, ...completeFlagsWhen("at"), ...rest].join("\n")}\n`;
}

function completeFlagsWhen(when: string, command?: Command): string[] {
  return completeFlags(command).map(([name, { placeholder, help }]) =>
    complete(when, `-l ${name}${placeholder === undefined ? "" : takeValue(placeholder)}`, help),
  );
}

function complete(when: string, what: string, text: string): string {
  return `complete -c plantstore -n ${quote(`__plantstore_${when}`.trimEnd())} ${what} -d ${quote(text)}`;
}

function takeValue(placeholder: string): string {
  const { choices, isFile } = readPlaceholder(placeholder);
  if (isFile) return " -r -F";
  return choices.length > 0 ? ` -x -a ${quote(choices.join(" "))}` : " -x";
}

function completeWord({ name }: Command, word: string): string[] {
  const { choices, isFile } = readPlaceholder(word);
  if (isFile) return [`complete -c plantstore -n ${quote(`__plantstore_within ${name}`)} -F`];
  return choices.map((choice) => complete(`at ${name}`, `-a ${choice}`, ""));
}

function quote(text: string): string {
  return `'${text.replace(/['\\]/g, "\\$&")}'`;
}

const head = `# Completes plantstore in fish. Made by: plantstore completion fish

function __plantstore_at -d 'Whether these are all words so far'
    set -l given (commandline -opc)[2..-1]
    test "$given" = "$argv"
end

function __plantstore_within -d 'Whether the words so far start with these'
    set -l given (commandline -opc)[2..-1]
    string match -q -- "$argv *" "$given "
end

complete -c plantstore -f`;
