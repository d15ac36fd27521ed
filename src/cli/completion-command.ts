/**
 * `plantstore completion`: a script that lets a shell complete commands, flags, values and files.
 */

import { usageError } from "./cli-error.ts";
import type { Command } from "./command.ts";
import { renderBashCompletion } from "./completion/bash.ts";
import { renderFishCompletion } from "./completion/fish.ts";
import { renderZshCompletion } from "./completion/zsh.ts";
import { renderSuggestion, suggest } from "./suggestion.ts";

const shells = {
  bash: renderBashCompletion,
  zsh: renderZshCompletion,
  fish: renderFishCompletion,
} as const;

const names = Object.keys(shells);

export function createCompletionCommand(loadCommands: () => Promise<Command[]>): Command {
  return {
    name: "completion",
    summary:
      "Print a script that completes commands, flags and values in a shell. Run it wherever the " +
      "shell starts: in ~/.bashrc, ~/.zshrc (behind compinit) or ~/.config/fish/config.fish.",
    words: [names.join("|")],
    flags: {},
    settings: [],
    examples: [
      "source <(plantstore completion bash)",
      "source <(plantstore completion zsh)",
      "plantstore completion fish | source",
    ],
    async run({ words: [shell = ""], terminal }) {
      const render = Object.entries(shells).find(([name]) => name === shell)?.[1];
      if (render === undefined) {
        throw usageError(
          `There is no completion for ${JSON.stringify(shell)}, only for ${names.join(", ")}. ` +
            `${renderSuggestion(suggest(shell, names))}See plantstore completion --help.`,
        );
      }
      terminal.out(render(await loadCommands()));
      return 0;
    },
  };
}
