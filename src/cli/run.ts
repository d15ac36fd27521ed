/**
 * How a command line runs: `main.ts` → `runCommand` → the command found in `catalog.ts` → its
 * arguments parsed by `command.ts` → its `run`. Help, version and errors are handled here.
 */
import { PlantStoreError } from "../domain/errors.ts";
import { catalog, commandNames, findCommandName, loadCommand } from "./catalog.ts";
import { CliError, exitCodes, usageError } from "./cli-error.ts";
import { type Command, readCall } from "./command.ts";
import { renderSuggestion, suggest } from "./suggestion.ts";
import type { Terminal } from "./terminal.ts";

/** Resolves to the exit code. */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await dispatch(args, terminal);
  } catch (error) {
    if (!(error instanceof CliError || error instanceof PlantStoreError)) throw error;
    terminal.say(`plantstore: ${error.message}`);
    if (error instanceof CliError) return error.exitCode;
    return error.code === "invalid-request" ? exitCodes.usage : exitCodes.failed;
  }
}

async function dispatch(args: readonly string[], terminal: Terminal): Promise<number> {
  const beforeDashes = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined);
  const [first] = args;
  if (beforeDashes.includes("--version") || first === "-v" || first === "version") {
    terminal.out(`${(await import("../shared/version.ts")).version}\n`);
    return exitCodes.done;
  }
  const isHelp = beforeDashes.includes("--help") || beforeDashes.includes("-h");
  if (isHelp || first === "help") {
    const words = beforeDashes.filter((word) => !word.startsWith("-"));
    terminal.out(await renderHelpFor(words[0] === "help" ? words.slice(1) : words));
    return exitCodes.done;
  }
  const name = findCommandName(args);
  if (name === undefined) {
    if (args.length > 1 || !commandNames.some((each) => isIn(first, each))) {
      throw unknownCommand(args);
    }
    terminal.say(await renderHelpFor(args));
    return exitCodes.usage;
  }
  const command = await loadCommand(name);
  const call = readCall(command, args.slice(name.split(" ").length), terminal);
  return (await command.run(call)) ?? exitCodes.done;
}

/** Whether a command belongs to a group such as `token`; without a group, all do. */
function isIn(group: string | undefined, name: string): boolean {
  return group === undefined || name.startsWith(`${group} `);
}

async function renderHelpFor(words: readonly string[]): Promise<string> {
  const { renderHelp, renderOverview } = await import("./help.ts");
  const name = findCommandName(words);
  if (name !== undefined) return renderHelp(await loadCommand(name));
  const [group, ...others] = words;
  const sections: Record<string, readonly Command[]> = {};
  for (const [title, section] of Object.entries(catalog)) {
    const shown = Object.entries(section).filter(([each]) => isIn(group, each));
    if (shown.length > 0) sections[title] = await Promise.all(shown.map(([, load]) => load()));
  }
  if (others.length > 0 || Object.keys(sections).length === 0) throw unknownCommand(words);
  return renderOverview(sections);
}

/** Suggests what may have been meant. */
function unknownCommand([first = "", second = ""]: readonly string[]): CliError {
  if (first.startsWith("-")) {
    return usageError(
      `There is no command "${first}". The command comes first, then its flags. ` +
        "See plantstore --help.",
    );
  }
  const isGroup = commandNames.some((name) => isIn(first, name));
  const typed = isGroup ? `${first} ${second}` : first;
  const near = suggest(`${first} ${second}`, commandNames);
  if (near.length === 0 && !isGroup) {
    const firstWords = new Set(commandNames.map((name) => name.split(" ")[0] ?? ""));
    near.push(...suggest(first, [...firstWords]));
    near.push(...commandNames.filter((name) => name.endsWith(` ${first}`)));
  }
  const help = isGroup ? `plantstore ${first} --help` : "plantstore --help";
  return usageError(`There is no command "${typed}". ${renderSuggestion(near)}See ${help}.`);
}
