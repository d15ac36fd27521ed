/** Work that takes long: shows how far it is, and stops when it is told to. */
import type { Tally } from "../storage/copy.ts";
import type { Terminal } from "./command.ts";
import { Progress, renderDuration, renderRate } from "./progress.ts";
import { onStopSignal } from "./stop-signals.ts";

const interruptedExitCode = 130;

/** Shows how far it is. */
export async function shown<Result>(
  terminal: Terminal,
  work: (tally: Tally) => Promise<Result>,
  end: (plants: number, elapsedMs: number) => void = () => {},
): Promise<Result> {
  const tally: Tally = { plants: 0, plantsInAll: 0 };
  const progress = new Progress(terminal, () => ({
    count: tally.plants,
    share: tally.plantsInAll > 0 ? tally.plants / tally.plantsInAll : undefined,
  }));
  try {
    return await work(tally);
  } finally {
    progress.end();
    end(tally.plants, progress.elapsedMs);
  }
}

/** Shows how far it is, and in the end how long it took. */
export function timed<Result>(
  terminal: Terminal,
  done: string,
  work: (tally: Tally) => Promise<Result>,
): Promise<Result> {
  return shown(terminal, work, (plants, elapsedMs) => {
    const rate = renderRate(plants, elapsedMs);
    const count = plants.toLocaleString("en");
    terminal.say(`${done} ${count} plants in ${renderDuration(elapsedMs)} (${rate}).`);
  });
}

/**
 * Resolves to the exit code. The first signal stops it between two batches, and `hint` says how to
 * go on; a second one, if it is not an echo of the first, ends it at once.
 */
export async function stoppable(
  terminal: Terminal,
  hint: string,
  work: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const stopping = new AbortController();
  const listenNoMore = onStopSignal(() => stopping.abort(), interruptedExitCode);
  try {
    return await work(stopping.signal);
  } catch (error) {
    if (error !== stopping.signal.reason) throw error;
    terminal.say(`plantstore: Stopped. ${hint}`);
    return interruptedExitCode;
  } finally {
    listenNoMore();
  }
}
