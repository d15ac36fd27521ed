/** The completion script for bash, from 3.2 on. */
import type { Command } from "../command.ts";
import { completeFlags, readPlaceholder, wordsByPlace } from "./places.ts";

export function renderBashCompletion(commands: readonly Command[]): string {
  const cases = [...tellPlaces(commands)].map(
    ([place, options]) => `    ${quote(place)}) echo ${quote(options)} ;;`,
  );
  return script.replace("    # places", () => cases.join("\n"));
}

/** What the script looks up. A flag that is not there has no value. */
function tellPlaces(commands: readonly Command[]): Map<string, string> {
  const places = new Map<string, string>();
  const joinFlags = (command?: Command) =>
    completeFlags(command)
      .map(([name]) => `--${name}`)
      .join(" ");
  const tell = (placeholder: string) => {
    const { choices, isFile } = readPlaceholder(placeholder);
    return isFile ? "<file>" : choices.join(" ");
  };
  for (const [place, options] of wordsByPlace(commands)) {
    places.set(`words of ${place}`, options.map(({ word }) => word).join(" "));
  }
  places.set("flags of ", joinFlags());
  for (const command of commands) {
    places.set(`flags of ${command.name}`, joinFlags(command));
    for (const [index, word] of command.words.entries()) {
      places.set(`word ${index} of ${command.name}`, tell(word));
    }
    for (const [name, { placeholder }] of completeFlags(command)) {
      if (placeholder !== undefined) places.set(`--${name} of ${command.name}`, tell(placeholder));
    }
  }
  return places;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Bash takes the equals sign for a word of its own: `--scope=read` is three. */
const script = `# Completes plantstore in bash. Made by: plantstore completion bash

_plantstore_look_up() {
  case $1 in
    # places
    *) return 1 ;;
  esac
}

_plantstore() {
  local current=\${COMP_WORDS[COMP_CWORD]} place= flag= ended= count=0 index word options
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    if [[ -n $flag && $word == = ]]; then continue
    elif [[ -n $flag ]]; then flag=
    elif [[ -z $ended && $word == -- ]]; then ended=yes
    elif [[ -z $ended && $word == -?* ]]; then
      _plantstore_look_up "$word of $place" >/dev/null && flag=$word
    elif [[ $count == 0 && " $(_plantstore_look_up "words of $place") " == *" $word "* ]]; then
      place=\${place:+$place }$word
    else count=$((count + 1))
    fi
  done
  [[ -n $flag && $current == = ]] && current=
  if [[ -n $flag ]]; then options=$(_plantstore_look_up "$flag of $place")
  elif [[ -z $ended && $current == -* ]]; then options=$(_plantstore_look_up "flags of $place")
  else
    options=$([[ $count == 0 ]] && _plantstore_look_up "words of $place") ||
      options=$(_plantstore_look_up "word $count of $place") ||
      options=$(_plantstore_look_up "flags of $place")
  fi
  local IFS=$' \\t\\n'
  if [[ $options == '<file>' ]]; then
    IFS=$'\\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  else COMPREPLY=($(compgen -W "$options" -- "$current"))
  fi
}

complete -F _plantstore plantstore
`;
