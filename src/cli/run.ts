/** Finds the command that the arguments call and runs it; shows help, version and errors. */
import { type ErrorCode, PlantStoreError } from "../domain/errors.ts";
import { catalog, commandNames, loadCommand } from "./catalog.ts";
import { type Command, readCall, type Terminal } from "./command.ts";
import { renderSuggestion, suggest } from "./suggestion.ts";

/** The others are 1. */
const exitCodeOf: Partial<Record<ErrorCode, number>> = { "invalid-request": 2, unauthenticated: 4 };

/**
 * Resolves to the exit code: 0 done, 1 failed, 2 called wrongly; commands have more of their own.
 */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await dispatch(args, terminal);
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    terminal.say(`plantstore: ${error.message}`);
    return exitCodeOf[error.code] ?? 1;
  }
}

async function dispatch(args: readonly string[], terminal: Terminal): Promise<number> {
  const beforeDashes = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined);
  if (beforeDashes.includes("--version")) {
    terminal.out(`${(await import("../version.ts")).version}\n`);
    return 0;
  }
  const isHelp = beforeDashes.includes("--help") || beforeDashes.includes("-h");
  if (isHelp || args[0] === "help") {
    const words = beforeDashes.filter((word) => !word.startsWith("-"));
    terminal.out(await renderHelpFor(words[0] === "help" ? words.slice(1) : words, terminal));
    return 0;
  }
  const name = findName(args);
  if (name === undefined) {
    const [topic] = args;
    if (args.length > 1 || !commandNames.some((each) => isOf(topic, each))) throw refuseName(args);
    terminal.say(await renderHelpFor(args, terminal));
    return 2;
  }
  const command = await loadCommand(name);
  return command.run(readCall(command, args.slice(name.split(" ").length), terminal));
}

/** The command whose words the arguments start with. */
function findName(args: readonly string[]): string | undefined {
  return commandNames.find((name) => name.split(" ").every((word, index) => word === args[index]));
}

/** Whether it is the first word of several commands, such as `token`. Of no word, all are. */
function isOf(topic: string | undefined, name: string): boolean {
  return topic === undefined || name.startsWith(`${topic} `);
}

async function renderHelpFor(words: readonly string[], terminal: Terminal): Promise<string> {
  const { renderHelp, renderOverview } = await import("./help.ts");
  const name = findName(words);
  if (name !== undefined) return renderHelp(await loadCommand(name), terminal);
  const [topic, ...others] = words;
  const groups: Record<string, readonly Command[]> = {};
  for (const [title, shelf] of Object.entries(catalog)) {
    const wanted = Object.entries(shelf).filter(([each]) => isOf(topic, each));
    if (wanted.length > 0) groups[title] = await Promise.all(wanted.map(([, load]) => load()));
  }
  if (others.length > 0 || Object.keys(groups).length === 0) throw refuseName(words);
  return renderOverview(groups, terminal);
}

/** Says what may have been meant: by how it is written, or by the last word of a command. */
function refuseName([first = "", second]: readonly string[]): PlantStoreError {
  if (first.startsWith("-")) {
    return new PlantStoreError(
      "invalid-request",
      `There is no command "${first}". A command comes first, then its flags. See plantstore --help.`,
    );
  }
  const ofTopic = commandNames.filter((name) => isOf(first, name));
  const topic = ofTopic.length > 0 ? first : undefined;
  const typed = [topic, topic === undefined ? first : second].filter(Boolean).join(" ");
  const sameVerb = commandNames.filter((name) => name.endsWith(` ${first}`));
  const firstWords = new Set(commandNames.map((name) => name.split(" ")[0] ?? ""));
  const nearest = suggest(typed, topic === undefined ? ["help", ...firstWords] : ofTopic);
  const meant = [nearest, sameVerb, ofTopic].find((names) => names.length > 0) ?? [];
  const help = ["plantstore", topic, "--help"].filter(Boolean).join(" ");
  return new PlantStoreError(
    "invalid-request",
    `There is no command "${typed}". ${renderSuggestion(meant)}See ${help}.`,
  );
}
