/** Ctrl+C and SIGTERM let a command finish cleanly. */
import { CliError, exitCodes } from "./cli-error.ts";

const stopSignals = ["SIGINT", "SIGTERM"] as const;

/**
 * Later signals change nothing: npm and `timeout` pass on what the process has already received.
 * Returns a function that stops listening.
 */
export function onStopSignal(stop: (signal: string) => void): () => void {
  for (const signal of stopSignals) process.on(signal, stop);
  return () => {
    for (const signal of stopSignals) process.off(signal, stop);
  };
}

/** Aborted by a stop signal, until it is disposed of. */
export function abortOnStop(): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const stopListening = onStopSignal(() => controller.abort());
  return { signal: controller.signal, [Symbol.dispose]: stopListening };
}

/** A stop signal aborts the work; `hint` says what became of it. Then throws a `CliError`. */
export async function cancellable<Result>(
  hint: string,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  using stop = abortOnStop();
  try {
    return await work(stop.signal);
  } catch (error) {
    // By name: streams throw an AbortError of their own.
    const isAborted = stop.signal.aborted && (error as Error).name === "AbortError";
    throw isAborted ? new CliError(`Stopped. ${hint}`, exitCodes.interrupted) : error;
  }
}
