/** The completion script for zsh: a function for `fpath`, or to be sourced. */
import type { Command } from "../command.ts";
import { completeFlags, type Option, readPlaceholder, wordsByPlace } from "./places.ts";

export function renderZshCompletion(commands: readonly Command[]): string {
  const places = [...wordsByPlace(commands)].map(
    ([place, options]) =>
      `    ${quote(place)}) options=(${options.map(describe).join(" ")}); _plantstore_words ;;`,
  );
  const calls = commands.map(
    (command) => `    ${quote(command.name)}) _arguments ${specify(command).join(" ")} ;;`,
  );
  return `#compdef plantstore
# Completes plantstore in zsh. Made by: plantstore completion zsh

_plantstore_words() {
  if [[ $words[2] == -* ]]; then _arguments ${specify().join(" ")}
  elif (( CURRENT == 2 )); then _describe -t commands command options
  fi
}

_plantstore() {
  local place=
  local -a options
  # The words that name the command are taken off; what is left is its own.
  while (( CURRENT > 2 )); do
    case "\${place:+$place }$words[2]" in
      ${steps(commands).map(quote).join("|")}) place="\${place:+$place }$words[2]"; shift words; (( CURRENT-- )) ;;
      *) break ;;
    esac
  done
  case $place in
${[...places, ...calls].join("\n")}
  esac
}

if [[ $funcstack[1] == _plantstore ]]; then _plantstore "$@"
else compdef _plantstore plantstore
fi
`;
}

/** Every word, and words behind each other, that lead to a command. */
function steps(commands: readonly Command[]): string[] {
  const places = [...wordsByPlace(commands).keys()].filter((place) => place !== "");
  return [...places, ...commands.map(({ name }) => name)];
}

function describe({ word, text }: Option): string {
  return quote(`${word}:${text}`);
}

function specify(command?: Command): string[] {
  const flags = completeFlags(command).map(([name, { placeholder, help }]) => {
    const text = help.replace(/[[\]\\:]/g, "\\$&");
    return placeholder === undefined
      ? `--${name}[${text}]`
      : `--${name}=[${text}]:${act(placeholder)}`;
  });
  const words = (command?.words ?? []).map((word, index) => {
    const isOptional = word.startsWith("[");
    return `${index + 1}:${isOptional ? ":" : ""}${act(word.replace(/^\[|\]$/g, ""))}`;
  });
  return [...flags, ...words].map(quote);
}

/** What stands for it, and how it is completed. */
function act(placeholder: string): string {
  const { choices, isFile } = readPlaceholder(placeholder);
  if (isFile) return `${placeholder}:_files`;
  return choices.length > 0 ? `${placeholder}:(${choices.join(" ")})` : `${placeholder}: `;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
