/** Signals that tell a process to stop, and that somebody insists. */
import { readFileSync } from "node:fs";

/** For a service, for which a closed terminal means something else. */
export const serviceSignals = ["SIGINT", "SIGTERM"] as const;
/**
 * One signal may come twice: npm passes a Ctrl+C on that the terminal has sent already, and
 * `timeout` of the system sends one to the process and to its group.
 */
const echoMs = 500;

/**
 * A later signal, if it is not an echo of the first, ends all at once with the exit code. Hands
 * back what ends the listening.
 */
export function onStopSignal(
  stop: (signal: string) => void,
  insistedExitCode: number,
  signals: readonly NodeJS.Signals[] = mayHearHangup()
    ? [...serviceSignals, "SIGHUP"]
    : serviceSignals,
): () => void {
  let toldAtMs: number | undefined;
  const hear = (signal: string) => {
    if (toldAtMs === undefined) {
      toldAtMs = performance.now();
      stop(signal);
    } else if (performance.now() - toldAtMs > echoMs) process.exit(insistedExitCode);
  };
  for (const signal of signals) process.on(signal, hear);
  return () => {
    for (const signal of signals) process.off(signal, hear);
  };
}

/**
 * Whether a closed terminal ends the process. `nohup` has the signal ignored, which to listen for
 * it would undo; where that cannot be known, it is left alone.
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
