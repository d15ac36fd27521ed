/** `plantstore completion`: a short script for a shell, which calls `__complete` at each Tab. */
import { usageError } from "./cli-error.ts";
import type { Command } from "./command.ts";

const scripts = {
  bash: `# plantstore completion for bash 3.2 and later
_plantstore() {
  local IFS=$'\\n' current=\${COMP_WORDS[COMP_CWORD]} lines
  lines=$("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
  # bash splits --flag=value into three words.
  [[ $current == = ]] && current=
  if [[ $lines == :file ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  else
    COMPREPLY=($lines)
  fi
}
complete -F _plantstore plantstore
`,
  zsh: `#compdef plantstore
# plantstore completion for zsh
_plantstore() {
  local -a lines
  lines=("\${(@f)$("\${(Q)words[1]}" __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  compset -P '--*='
  if [[ $lines[1] == :file ]]; then
    _files
  elif [[ -n $lines[1] ]]; then
    lines=("\${(@)lines//:/\\\\:}")
    lines=("\${(@)lines/$'\\t'/:}")
    _describe plantstore lines
  fi
}
if [[ $funcstack[1] == _plantstore ]]; then _plantstore "$@"; else compdef _plantstore plantstore; fi
`,
  fish: `# plantstore completion for fish 3.0 and later
function __plantstore_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l prefix (string match -r -- '^--[^=]*=' $words[-1])
    set -l lines ($words[1] __complete -- $words[2..-1] 2>/dev/null)
    if test "$lines" = :file
        set lines (__fish_complete_path (string replace -- "$prefix" '' $words[-1]))
    end
    for line in $lines
        echo "$prefix$line"
    end
end
complete -c plantstore -f -a '(__plantstore_complete)'
`,
} as const;

const shells = Object.keys(scripts) as (keyof typeof scripts)[];

export const completionCommand: Command = {
  name: "completion",
  summary:
    "Print a script that completes commands, flags and values in a shell. Run it when the shell " +
    "starts: in ~/.bashrc, in ~/.zshrc after compinit, or in ~/.config/fish/config.fish.",
  words: [shells.join("|")],
  flags: {},
  settings: [],
  examples: [
    "source <(plantstore completion bash)",
    "source <(plantstore completion zsh)",
    "plantstore completion fish | source",
  ],
  async run({ words: [name = ""], terminal }) {
    const shell = shells.find((each) => each === name);
    if (shell === undefined) {
      throw usageError(`There is no completion for "${name}", only for ${shells.join(", ")}.`);
    }
    terminal.out(scripts[shell]);
  },
};
