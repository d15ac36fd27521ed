/** The signal to stop, and a second one that ends the process at once. */
import { readFileSync } from "node:fs";

/** A service takes SIGHUP for something else. */
export const serviceSignals = ["SIGINT", "SIGTERM"] as const;
/**
 * One signal may come twice: npm passes on a Ctrl+C that the terminal has already sent, and
 * `timeout` sends one to the process and one to its group.
 */
const echoMs = 500;

/**
 * A later signal, unless it repeats the first, exits at once with the code. Returns a function that
 * stops listening.
 */
export function onStopSignal(
  stop: (signal: string) => void,
  secondExitCode: number,
  signals: readonly NodeJS.Signals[] = mayHearHangup()
    ? [...serviceSignals, "SIGHUP"]
    : serviceSignals,
): () => void {
  let stoppedAtMs: number | undefined;
  const hear = (signal: string) => {
    if (stoppedAtMs === undefined) {
      stoppedAtMs = performance.now();
      stop(signal);
    } else if (performance.now() - stoppedAtMs > echoMs) process.exit(secondExitCode);
  };
  for (const signal of signals) process.on(signal, hear);
  return () => {
    for (const signal of signals) process.off(signal, hear);
  };
}

/**
 * Whether a closed terminal ends the process. `nohup` ignores the signal, and a listener would undo
 * that; where it can't be known, there is no listener.
 */
function mayHearHangup(): boolean {
  try {
    const status = readFileSync("/proc/self/status", "utf8");
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(status)?.[1];
    return ignored !== undefined && (BigInt(`0x${ignored}`) & 1n) === 0n;
  } catch {
    return false;
  }
}
