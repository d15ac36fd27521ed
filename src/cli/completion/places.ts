/**
 * What can stand where on the command line, from how the commands describe themselves; for every
 * shell.
 */
import { type Command, type FlagDescription, flagsOf } from "../command.ts";

export interface Option {
  readonly word: string;
  readonly text: string;
}

/**
 * What can follow words that are not yet a whole command: at the place `token`, the word `create`.
 */
export function wordsByPlace(commands: readonly Command[]): Map<string, Option[]> {
  const places = new Map<string, Option[]>();
  const add = (place: string, word: string, text: string) => {
    const options = places.get(place) ?? [];
    if (!options.some((option) => option.word === word)) options.push({ word, text });
    places.set(place, options);
  };
  for (const prefix of [[], ["help"]]) {
    for (const { name, summary } of commands) {
      const [topic = "", verb] = name.split(" ");
      const text = firstSentence(summary);
      add(prefix.join(" "), topic, verb === undefined ? text : listVerbs(commands, topic));
      if (verb !== undefined) add([...prefix, topic].join(" "), verb, text);
    }
  }
  add("", "help", "Show what a command does.");
  return places;
}

function listVerbs(commands: readonly Command[], topic: string): string {
  const names = commands.map(({ name }) => name.split(" ")).filter(([first]) => first === topic);
  return names.map(([, verb]) => verb).join(", ");
}

export function firstSentence(text: string): string {
  return text.split(/(?<=\.)\s/)[0] ?? text;
}

const always: Readonly<Record<string, FlagDescription>> = {
  help: { help: "show what the command does" },
  version: { help: "show the version" },
};

export function completeFlags(command?: Command): [name: string, flag: FlagDescription][] {
  return Object.entries({ ...(command && flagsOf(command)), ...always });
}

/** `read|write` has two choices; `FILE` and `[FILE|-]` are the name of a file. */
export function readPlaceholder(placeholder: string) {
  const parts = placeholder.replace(/^\[|\]$/g, "").split("|");
  return {
    choices: parts.filter((part) => /^[a-z]/.test(part)),
    isFile: parts.includes("FILE"),
  };
}
