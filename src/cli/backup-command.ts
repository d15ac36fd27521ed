/** `plantstore backup`: everything in a store, as it is at one moment, into one file. */
import { existsSync, statSync } from "node:fs";
import { readSetting, storageSettings } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { type BackupSummary, isBackup, writeBackup } from "../storage/backup.ts";
import { isSameDatabase } from "../storage/open.ts";
import type { Call, Command } from "./command.ts";
import { cancellable, describeContents, toWork } from "./long-work.ts";
import { exitCodes } from "./service-client.ts";
import { locateTarget } from "./target-file.ts";

export const backupCommand: Command = {
  name: "backup",
  summary: "Write everything in a store to a file, while it is served.",
  words: ["FILE"],
  flags: {
    force: { help: "replace FILE, if it is an older backup" },
    json: { help: "as JSON, also at a terminal" },
  },
  settings: storageSettings,
  examples: [
    "plantstore backup plants.backup",
    'plantstore backup "/backups/plants-$(date +%F).backup" --database /var/lib/plantstore/plants.db',
  ],
  run(call) {
    const [path = ""] = call.words;
    const database = readSetting("database", call.flags);
    const target = checkTarget(path, database, call.flags.force === true);
    return cancellable(call.terminal, "Nothing was written.", async (signal) => {
      show(call, path, await writeBackup(database, target, toWork(call, signal)));
      return exitCodes.done;
    });
  },
};

/** Resolves symbolic links. Only an older backup is ever replaced. */
function checkTarget(path: string, database: string, mayReplace: boolean): string {
  const target = locateTarget(path);
  const [, beside] = /^(.+)-(?:wal|shm|journal|serving)$/.exec(target) ?? [];
  if (beside !== undefined && isSameDatabase(beside, database)) {
    throw new PlantStoreError("invalid-request", `${path} is a file of the database.`);
  }
  if (!existsSync(target)) return target;
  if (isSameDatabase(path, database)) {
    throw new PlantStoreError("invalid-request", `${path} is the database itself.`);
  }
  if (!isBackup(path)) {
    throw new PlantStoreError("conflict", `${path} exists already, and is not a backup.`);
  }
  if (!mayReplace) {
    throw new PlantStoreError("conflict", `${path} exists already. With --force it is replaced.`);
  }
  return target;
}

function show({ flags, terminal }: Call, path: string, summary: BackupSummary): void {
  const { madeAt, plants, tokens } = summary;
  const text =
    terminal.isInteractive && flags.json !== true
      ? `${path}: ${describeContents(summary)}, as of ${madeAt}.`
      : JSON.stringify({ file: path, madeAt, plants, tokens, bytes: statSync(path).size });
  terminal.out(`${text}\n`);
}
