/** `plantstore copy`: everything from one database to another, of either engine. */
import { readSetting } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { copyStore } from "../storage/backup.ts";
import { isSameDatabase, maskAddress } from "../storage/open.ts";
import type { Command } from "./command.ts";
import { cancellable, describeContents, toWork } from "./long-work.ts";
import { exitCodes } from "./service-client.ts";

export const copyCommand: Command = {
  name: "copy",
  summary: "Copy all plants, tokens and idempotency keys to another database.",
  words: [],
  flags: {
    force: { help: "replace a SQLite file that exists; it is kept under another name" },
    json: { help: "as JSON, also at a terminal" },
  },
  settings: ["copyFrom", "copyTo", "databaseConnectTimeoutMs", "databaseStatementTimeoutMs"],
  examples: [
    "plantstore copy --from data/plants.db --to postgres://plants@db1,db2/plants",
    "PLANTSTORE_COPY_FROM=postgres://plants:secret@db1/plants plantstore copy --to plants.db",
  ],
  run(call) {
    const { flags, terminal } = call;
    const from = readSetting("copyFrom", flags);
    const to = readSetting("copyTo", flags);
    if (isSameDatabase(from, to)) {
      throw new PlantStoreError("invalid-request", "--from and --to are the same database.");
    }
    return cancellable(terminal, "Nothing was changed.", async (signal) => {
      const mayReplace = flags.force === true;
      const copied = await copyStore(from, to, { ...toWork(call, signal), mayReplace });
      const { plants, tokens, kept } = copied;
      if (terminal.isInteractive && flags.json !== true) {
        terminal.out(`Copied ${describeContents(copied)} to ${maskAddress(to)}.\n`);
        if (kept !== undefined) terminal.out(`The old file is kept as ${kept}.\n`);
      } else terminal.out(`${JSON.stringify({ plants, tokens, kept })}\n`);
      return exitCodes.done;
    });
  },
};
