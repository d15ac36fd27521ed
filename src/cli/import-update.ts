/** `plantstore import --update`: makes the garden's plants as a file has them. Deletes nothing. */
import {
  type Change,
  Comparison,
  describeComparison,
  renderChange,
} from "../../client/files/comparison.ts";
import type { Format, PlantUpdate, ValidRow } from "../../client/files/rows.ts";
import { describeUpdate, Updater } from "../../client/files/updater.ts";
import type { PlantStore } from "../../client/plant-store.ts";
import { renderCount, showSafely } from "../shared/text.ts";
import { CliError, exitCodes } from "./cli-error.ts";
import { type Call, confirm } from "./command.ts";
import { listRows, mapStorageFull, printCounts } from "./import-report.ts";
import { cancellable } from "./stop-signals.ts";
import { withProgress } from "./terminal.ts";

/** Enough to see what kind of changes they are. */
const shownChanges = 10;

/** Compares, shows what would change, asks, and sends it. Resolves to the exit code. */
export async function updatePlants(
  call: Call,
  store: PlantStore,
  rows: readonly ValidRow<PlantUpdate>[],
  format: Format,
): Promise<number | undefined> {
  const comparison = await compare(call, store, rows, format);
  const { added, changes, refused } = comparison;
  const isDry = call.flags["dry-run"] === true;
  showChanges(call, isDry ? changes : changes.slice(0, shownChanges), changes.length);
  listRows(call, refused);
  if (isDry) {
    call.terminal.say(`${describeComparison(comparison)} Nothing was sent.`);
    printCounts(call, countComparison(comparison));
    return refused.length > 0 ? exitCodes.failed : undefined;
  }
  call.terminal.say(describeComparison(comparison));
  if (added.length + changes.length > 0) await confirmUpdate(call, comparison);
  await send(call, store, comparison);
  return undefined;
}

function compare(
  { terminal }: Call,
  store: PlantStore,
  rows: readonly ValidRow<PlantUpdate>[],
  format: Format,
): Promise<Comparison> {
  return cancellable("Nothing was sent.", async (signal) => {
    const comparison = new Comparison(rows, format);
    let compared = 0;
    async function readGarden(): Promise<void> {
      for await (const plants of store.pages({ signal })) {
        comparison.take(plants);
        compared += plants.length;
      }
    }
    const describe = () => `${renderCount(compared, "plant")} compared`;
    await withProgress(terminal, describe, readGarden, signal);
    comparison.finish();
    return comparison;
  });
}

function showChanges({ terminal }: Call, changes: readonly Change[], total: number): void {
  for (const change of changes) terminal.say(showSafely(renderChange(change)));
  const more = total - changes.length;
  if (more > 0) terminal.say(`… and ${renderCount(more, "more change")}`);
}

function countComparison({
  added,
  addedWithIds,
  changes,
  doubtful,
  unchanged,
  refused,
}: Comparison) {
  return {
    new: added.length - addedWithIds,
    newWithIds: addedWithIds,
    changed: changes.length,
    doubtful,
    unchanged,
    refused: refused.length,
  };
}

async function confirmUpdate(call: Call, { added, changes }: Comparison): Promise<void> {
  const steps = [
    changes.length > 0 && `change ${renderCount(changes.length, "plant")}`,
    added.length > 0 && `add ${renderCount(added.length, "plant")}`,
  ];
  await confirm(call, steps.filter(Boolean).join(" and "), "Nothing was sent.");
}

/** Reports what became of the rows, even if it fails midway. */
async function send(call: Call, store: PlantStore, comparison: Comparison): Promise<void> {
  await cancellable("Not all rows were sent.", async (_, stop) => {
    const updater = new Updater(store, comparison, { stop });
    const total = renderCount(comparison.changes.length + comparison.added.length, "row");
    const describe = () => `${renderCount(updater.done)} of ${total}`;
    const startedAtMs = performance.now();
    try {
      await withProgress(call.terminal, describe, () => updater.send(), stop.asked);
    } catch (error) {
      throw mapStorageFull(error);
    } finally {
      report(call, comparison, updater, performance.now() - startedAtMs);
    }
    if (updater.refused.length > 0) throw new CliError(compareAgain);
    if (comparison.refused.length > 0) throw new CliError(fixRefused);
  });
}

const compareAgain = "Run the same import again to compare the refused rows with what is here now.";
const fixRefused = "Fix the refused rows in the file, and run the same import again.";

function report(call: Call, comparison: Comparison, updater: Updater, elapsedMs: number): void {
  const { changed, changedMax, unchanged, refused, importer, isDone } = updater;
  const { stored, storedMax, notCompared } = importer;
  listRows(call, refused);
  printCounts(call, {
    stored,
    ...(storedMax > stored && { storedMax }),
    changed,
    ...(changedMax > changed && { changedMax }),
    unchanged,
    refused: comparison.refused.length + refused.length,
    ...(notCompared > 0 && { notCompared }),
  });
  // The comparison has said that nothing is to be done.
  if (comparison.changes.length + comparison.added.length === 0) return;
  // A comparison finds what is stored. It can't find what may still be on its way.
  const promise = storedMax > stored ? "" : ": no plant is added twice";
  const goOn = isDone ? "" : ` Run the same import again to go on${promise}.`;
  call.terminal.say(describeUpdate(updater, elapsedMs) + goOn);
}
