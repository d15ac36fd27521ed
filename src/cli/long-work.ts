/** Commands that take long: they report their phases, and Ctrl+C cancels them. */
import { readLimits } from "../config.ts";
import type { BackupWork } from "../storage/backup.ts";
import type { Call, Terminal } from "./command.ts";
import { onStopSignal } from "./stop-signals.ts";

const interruptedExitCode = 130;

/** What a backup or a restore needs of the command line: limits, a signal, somebody who watches. */
export function toWork({ flags, terminal }: Call, signal: AbortSignal): BackupWork {
  return {
    limits: readLimits(flags),
    signal,
    onPhase(phase) {
      if (terminal.isWatched) terminal.say(`${phase} …`);
    },
  };
}

/**
 * Resolves to the exit code. The first signal aborts the work, and `hint` says what came of it; a
 * second one, if it is not an echo of the first, ends the process at once.
 */
export async function cancellable(
  terminal: Terminal,
  hint: string,
  work: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const aborting = new AbortController();
  const stopListening = onStopSignal(() => aborting.abort(), interruptedExitCode);
  try {
    return await work(aborting.signal);
  } catch (error) {
    // A stream wraps the reason in an error of its own.
    const isAborted = aborting.signal.aborted && (error as Error).name === "AbortError";
    if (!isAborted) throw error;
    terminal.say(`plantstore: Stopped. ${hint}`);
    return interruptedExitCode;
  } finally {
    stopListening();
  }
}

/** Follows "FILE: " or "Restored …: ". */
export function describeContents({ plants, tokens }: { plants: number; tokens: number }): string {
  return `${count(plants, "plant")} and ${count(tokens, "token")}`;
}

function count(number: number, word: string): string {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}
