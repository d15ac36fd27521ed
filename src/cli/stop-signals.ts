/** Ctrl+C and SIGTERM: the first lets a command finish cleanly, a later one exits at once. */
import { CliError, exitCodes } from "./cli-error.ts";

const stopSignals = ["SIGINT", "SIGTERM"] as const;

/** npm and `timeout` pass on a signal that the process has already received. */
const echoMs = 500;

/** Returns a function that stops listening. */
export function onStopSignal(
  stop: (signal: string) => void,
  secondExitCode: number = exitCodes.interrupted,
): () => void {
  let stoppedAtMs: number | undefined;
  const listener = (signal: string) => {
    if (stoppedAtMs === undefined) {
      stoppedAtMs = performance.now();
      stop(signal);
    } else if (performance.now() - stoppedAtMs > echoMs) process.exit(secondExitCode);
  };
  for (const signal of stopSignals) process.on(signal, listener);
  return () => {
    for (const signal of stopSignals) process.off(signal, listener);
  };
}

/** A stop signal aborts the work; `hint` says what became of it. Then throws a `CliError`. */
export async function cancellable<Result>(
  hint: string,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const stopListening = onStopSignal(() => controller.abort());
  try {
    return await work(controller.signal);
  } catch (error) {
    // By name: streams throw an AbortError of their own.
    const isAborted = controller.signal.aborted && (error as Error).name === "AbortError";
    throw isAborted ? new CliError(`Stopped. ${hint}`, exitCodes.interrupted) : error;
  } finally {
    stopListening();
  }
}
