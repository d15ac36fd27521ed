/** `plantstore export`: the plants of a garden to a file or to standard output. */
import { fchmodSync, openSync, realpathSync, statSync } from "node:fs";
import { extname } from "node:path";
import { PlantRenderer, renderCount, renderDuration } from "../../client/files/renderer.ts";
import { formatOf } from "../../client/files/rows.ts";
import type { Plant } from "../../client/plant-store.ts";
import { replaceDurably } from "../storage/durable-file.ts";
import { mapFileError } from "../storage/failures.ts";
import { usageError } from "./cli-error.ts";
import { type Call, type Command, textFlag } from "./command.ts";
import { withProgress } from "./progress.ts";
import {
  chooseFormat,
  formatFlag,
  patient,
  tagFilter,
  variables,
  withService,
} from "./service-client.ts";
import { cancellable } from "./stop-signals.ts";
import { writeResult } from "./terminal.ts";

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
    const renderer = new PlantRenderer(chooseFormat(call, path));
    const tag = textFlag(call, "tag");
    const exportTo = (write: Write, signal?: AbortSignal) =>
      withService(
        call,
        (store) => exportPlants(call, store.pages({ tag, signal }), renderer, write),
        patient,
      );
    if (path === "-") {
      await exportTo(call.terminal.out);
      return;
    }
    try {
      const older = statSync(path, { throwIfNoEntry: false });
      // Such as a pipe, which is written to as it is. Ctrl+C must work even if nobody reads it.
      if (older?.isFile() === false) await exportTo(writeTo(openSync(path, "w"), path));
      else {
        await cancellable(`${path} was not changed.`, (signal) =>
          replaceDurably(older ? realpathSync(path) : path, async (descriptor) => {
            await exportTo(writeTo(descriptor, path), signal);
            if (older) fchmodSync(descriptor, older.mode & 0o777);
          }),
        );
      }
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

type Write = (text: string) => void;

async function exportPlants(
  { terminal }: Call,
  pages: AsyncIterable<readonly Plant[]>,
  renderer: PlantRenderer,
  write: Write,
): Promise<void> {
  const startedAtMs = performance.now();
  let count = 0;
  const work = async () => {
    write(renderer.header());
    for await (const page of pages) {
      write(renderer.page(page));
      count += page.length;
    }
    write(renderer.footer());
  };
  await withProgress(terminal, () => ({ count }), work);
  const took = renderDuration(performance.now() - startedAtMs);
  terminal.say(`Exported ${renderCount(count, "plant")} in ${took}.`);
  if (renderer.warning !== undefined) terminal.say(renderer.warning);
}

function writeTo(descriptor: number, path: string): Write {
  return (text) => writeResult(descriptor, text, path);
}
