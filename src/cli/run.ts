/** Finds the command that the arguments call and runs it; shows help, version and errors. */
import { PlantStoreError } from "../domain/errors.ts";
import { version } from "../version.ts";
import { checkCommand } from "./check-command.ts";
import { alignColumns, type Command, readCall, renderHelp, type Terminal } from "./command.ts";
import { copyCommand } from "./copy-command.ts";
import { exportCommand } from "./export-command.ts";
import { importCommand } from "./import-command.ts";
import { addPlantCommand, deletePlantCommand, listPlantsCommand } from "./plants-commands.ts";
import { serveCommand } from "./serve-command.ts";
import { createTokenCommand, listTokensCommand, revokeTokenCommand } from "./token-commands.ts";

export const commands: readonly Command[] = [
  serveCommand,
  createTokenCommand,
  listTokensCommand,
  revokeTokenCommand,
  addPlantCommand,
  listPlantsCommand,
  deletePlantCommand,
  importCommand,
  exportCommand,
  copyCommand,
  checkCommand,
];

/** Resolves to the exit code: 0 done, 1 failed, 2 called wrongly; commands have more of their own. */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await dispatch(args, terminal);
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    terminal.say(`plantstore: ${error.message}`);
    return error.code === "invalid-request" ? 2 : 1;
  }
}

async function dispatch(args: readonly string[], terminal: Terminal): Promise<number> {
  const beforeFlags = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined);
  if (beforeFlags.includes("--version")) {
    terminal.out(`${version}\n`);
    return 0;
  }
  const isHelp = beforeFlags.includes("--help") || beforeFlags.includes("-h");
  const command = commands.find(({ name }) =>
    name.split(" ").every((word, index) => word === args[index]),
  );
  if (command && isHelp) {
    terminal.out(renderHelp(command));
    return 0;
  }
  if (command) {
    const rest = args.slice(command.name.split(" ").length);
    return command.run(readCall(command, rest, terminal));
  }
  const words = args.filter((word) => !word.startsWith("-"));
  if (isHelp || words[0] === "help") {
    terminal.out(renderOverview(words[0] === "help" ? words[1] : words[0]));
    return 0;
  }
  const isTopic = commands.some(({ name }) => name.startsWith(`${args.join(" ")} `));
  if (args.length === 0 || isTopic) {
    terminal.say(renderOverview(args[0]));
    return 2;
  }
  throw new PlantStoreError(
    "invalid-request",
    `There is no command "${(words.length > 0 ? words : args).join(" ")}". See plantstore --help.`,
  );
}

function renderOverview(topic: string | undefined): string {
  const shown = commands.filter(({ name }) => name.split(" ")[0] === topic);
  const rows = (shown.length > 0 ? shown : commands).map(({ name, words, summary }) => [
    ["plantstore", name, ...words].join(" "),
    summary,
  ]);
  return [
    "Plant Store keeps a store of plants behind an HTTP API.",
    "",
    "Usage:",
    ...alignColumns(rows).map((line) => `  ${line}`),
    "",
    "Each command explains itself with --help. --version shows the version.",
    "",
  ].join("\n");
}
