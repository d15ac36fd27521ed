/** `plantstore export`: the plants of a garden to a file or to standard output. */
import { fchmodSync, openSync, realpathSync, statSync } from "node:fs";
import { extname } from "node:path";
import { PlantRenderer } from "../../client/files/renderer.ts";
import { formatOf } from "../../client/files/rows.ts";
import type { PlantStore } from "../../client/plant-store.ts";
import { mapFileError } from "../shared/system-errors.ts";
import { renderCount, renderDuration } from "../shared/text.ts";
import { replaceDurably } from "../storage/durable-file.ts";
import { usageError } from "./cli-error.ts";
import { type Call, type Command, textFlag } from "./command.ts";
import {
  chooseFormat,
  formatFlag,
  patient,
  tagFilter,
  variables,
  withService,
} from "./service-client.ts";
import { cancellable } from "./stop-signals.ts";
import { withProgress, writeResult } from "./terminal.ts";

export const exportCommand: Command = {
  name: "export",
  summary:
    "Write plants, with their ids, to a file or to standard output: all of them, or one tag.",
  words: ["[FILE|-]"],
  flags: { format: formatFlag, tag: tagFilter },
  settings: ["url"],
  variables,
  examples: [
    "plantstore export plants.csv",
    'plantstore export shade.csv --tag "shade"',
    "plantstore export --format csv | gzip > plants.csv.gz",
  ],
  async run(call) {
    const path = call.words[0] ?? "-";
    refuseExtension(call, path);
    const { terminal } = call;
    if (path === "-") return void terminal.say(await exportTo(call, terminal.out));
    try {
      const older = statSync(path, { throwIfNoEntry: false });
      // Such as a pipe, which is written to as it is. Ctrl+C must work even if nobody reads it.
      if (older?.isFile() === false) {
        const pipe = openSync(path, "w");
        return void terminal.say(await exportTo(call, (text) => writeResult(pipe, text, path)));
      }
      const exported = await cancellable(`${path} was not changed.`, (signal) =>
        replaceDurably(older ? realpathSync(path) : path, async (descriptor) => {
          const write = (text: string) => writeResult(descriptor, text, path);
          const said = await exportTo(call, write, signal);
          if (older) fchmodSync(descriptor, older.mode & 0o777);
          return said;
        }),
      );
      // Not before the file is there.
      terminal.say(exported);
    } catch (error) {
      throw mapFileError("write", path, error);
    }
  },
};

/** An export is text, whatever the file's extension promises. */
function refuseExtension({ flags }: Call, path: string): void {
  const extension = extname(path);
  if (flags.format !== undefined || extension === "" || formatOf(path) !== undefined) return;
  throw usageError(
    `There is no export format ${extension}. Use .csv, which spreadsheets open, .jsonl or .json, or ` +
      "choose the format with --format.",
  );
}

/** Returns what to say of it. */
async function exportTo(
  call: Call,
  write: (text: string) => void,
  signal?: AbortSignal,
): Promise<string> {
  const renderer = new PlantRenderer(chooseFormat(call, call.words[0] ?? "-"));
  const startedAtMs = performance.now();
  let count = 0;
  const writePlants = async (store: PlantStore) => {
    write(renderer.header());
    for await (const page of store.pages({ tag: textFlag(call, "tag"), signal })) {
      write(renderer.page(page));
      count += page.length;
    }
    write(renderer.footer());
  };
  const describe = () => renderCount(count, "plant");
  await withProgress(call.terminal, describe, () => withService(call, writePlants, patient));
  const took = renderDuration(performance.now() - startedAtMs);
  const exported = `Exported ${renderCount(count, "plant")} in ${took}.`;
  return renderer.warning === undefined ? exported : `${exported}\n${renderer.warning}`;
}
