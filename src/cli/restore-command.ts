/** `plantstore restore`: everything from a backup into a store that nobody serves. */
import { readSetting, storageSettings } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { type BackupSummary, checkBackup, restoreBackup } from "../storage/backup.ts";
import { isSameDatabase, maskAddress } from "../storage/open.ts";
import type { Call, Command } from "./command.ts";
import { cancellable, describeContents, toWork } from "./long-work.ts";
import { exitCodes } from "./service-client.ts";

export const restoreCommand: Command = {
  name: "restore",
  summary: "Restore a store that is not being served from a backup.",
  words: ["FILE"],
  flags: {
    force: { help: "replace a SQLite file that exists; it is kept under another name" },
    "dry-run": { help: "only check that FILE could be restored, and say what it holds" },
    json: { help: "as JSON, also at a terminal" },
  },
  settings: storageSettings,
  examples: [
    "plantstore restore plants.backup",
    "plantstore restore plants.backup --force",
    "plantstore restore plants.backup --dry-run",
    "PLANTSTORE_DATABASE=postgres://plants:secret@db1/plants plantstore restore plants.backup",
  ],
  run(call) {
    const [path = ""] = call.words;
    return cancellable(call.terminal, "Nothing was changed.", async (signal) => {
      const work = toWork(call, signal);
      if (call.flags["dry-run"] === true) {
        show(call, `${path} holds`, await checkBackup(path, work));
        return exitCodes.done;
      }
      const database = readSetting("database", call.flags);
      if (isSameDatabase(path, database)) {
        throw new PlantStoreError("invalid-request", `${path} cannot be restored into itself.`);
      }
      const mayReplace = call.flags.force === true;
      const restored = await restoreBackup(path, database, { ...work, mayReplace });
      show(call, `Restored ${maskAddress(database)}:`, restored);
      return exitCodes.done;
    });
  },
};

function show(call: Call, title: string, summary: BackupSummary & { kept?: string | undefined }) {
  const { flags, terminal } = call;
  const { madeAt, plants, tokens, kept } = summary;
  if (terminal.isInteractive && flags.json !== true) {
    terminal.out(`${title} ${describeContents(summary)}, as of ${madeAt}.\n`);
    if (kept !== undefined) terminal.out(`The old file is kept as ${kept}.\n`);
  } else terminal.out(`${JSON.stringify({ madeAt, plants, tokens, kept })}\n`);
}
