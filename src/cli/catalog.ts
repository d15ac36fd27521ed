/** Every command by its name. To add one, write its `Command` and add a line here. */
import type { Command } from "./command.ts";

type Section = Readonly<Record<string, () => Promise<Command>>>;

/** In the order of the help. Loaded when called: importing all of them would slow every start. */
export const catalog: Readonly<Record<string, Section>> = {
  Service: {
    serve: async () => (await import("./serve-command.ts")).serveCommand,
    health: async () => (await import("./health-command.ts")).healthCommand,
  },
  Tokens: {
    "token create": async () => (await import("./token-commands.ts")).createTokenCommand,
    "token list": async () => (await import("./token-commands.ts")).listTokensCommand,
    "token revoke": async () => (await import("./token-commands.ts")).revokeTokenCommand,
    whoami: async () => (await import("./plants-commands.ts")).whoamiCommand,
  },
  Gardens: {
    "garden list": async () => (await import("./garden-commands.ts")).listGardensCommand,
    "garden delete": async () => (await import("./garden-commands.ts")).deleteGardenCommand,
  },
  "Plants of a running service": {
    "plants add": async () => (await import("./plants-commands.ts")).addPlantCommand,
    "plants get": async () => (await import("./plants-commands.ts")).getPlantsCommand,
    "plants list": async () => (await import("./plants-commands.ts")).listPlantsCommand,
    "plants tags": async () => (await import("./plants-commands.ts")).listTagsCommand,
    "plants edit": async () => (await import("./plants-commands.ts")).editPlantCommand,
    "plants delete": async () => (await import("./plants-commands.ts")).deletePlantCommand,
    events: async () => (await import("./events-command.ts")).eventsCommand,
  },
  Backups: {
    backup: async () => (await import("./backup-commands.ts")).backupCommand,
    restore: async () => (await import("./backup-commands.ts")).restoreCommand,
  },
  "Moving data": {
    import: async () => (await import("./import-command.ts")).importCommand,
    export: async () => (await import("./export-command.ts")).exportCommand,
    copy: async () => (await import("./backup-commands.ts")).copyCommand,
  },
};

/** What people type out of habit. */
const shortForms: Readonly<Record<string, string>> = { list: "ls", delete: "rm", revoke: "rm" };

const loaders = new Map(Object.values(catalog).flatMap((section) => Object.entries(section)));

export const commandNames: readonly string[] = [...loaders.keys()];

/** The command that the words start with. */
export function findCommandName(words: readonly string[]): string | undefined {
  const isMeant = (word: string, typed = "") => typed === word || typed === shortForms[word];
  return commandNames.find((name) =>
    name.split(" ").every((word, index) => isMeant(word, words[index])),
  );
}

export async function loadCommand(name: string): Promise<Command> {
  const load = loaders.get(name);
  if (load === undefined) throw new Error(`There is no command ${name}.`);
  return load();
}
