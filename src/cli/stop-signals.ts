/** Ctrl+C and SIGTERM let a command finish cleanly. */
import { Stop } from "../../client/files/stop.ts";
import { CliError, exitCodes } from "./cli-error.ts";

const stopSignals = ["SIGINT", "SIGTERM"] as const;

/** Returns a function that stops listening. */
export function onStopSignal(stop: (signal: string) => void): () => void {
  for (const signal of stopSignals) process.on(signal, stop);
  return () => {
    for (const signal of stopSignals) process.off(signal, stop);
  };
}

/** A stop that signals ask for, until it is disposed of. */
export function listenForStop(): { readonly stop: Stop } & Disposable {
  const stop = new Stop();
  const stopListening = onStopSignal(() => stop.press());
  return { stop, [Symbol.dispose]: stopListening };
}

/**
 * A stop signal aborts the work; `hint` says what became of it. Then throws a `CliError`. Work that
 * has to find out what it did may take longer: see `Stop`.
 */
export async function cancellable<Result>(
  hint: string,
  work: (signal: AbortSignal, stop: Stop) => Promise<Result>,
): Promise<Result> {
  using listening = listenForStop();
  const { stop } = listening;
  try {
    return await work(stop.asked, stop);
  } catch (error) {
    // By name: streams throw an AbortError of their own.
    const isAborted = stop.asked.aborted && (error as Error).name === "AbortError";
    throw isAborted ? new CliError(`Stopped. ${hint}`, exitCodes.interrupted) : error;
  }
}
