/** Signals that tell a process to stop, and that somebody insists. */

const signals = ["SIGINT", "SIGTERM"] as const;
/**
 * One signal may come twice: npm passes a Ctrl+C on that the terminal has sent already, and
 * `timeout` of the system sends one to the process and to its group.
 */
const echoMs = 500;

/**
 * A later signal, if it is not an echo of the first, ends all at once with the exit code. Hands
 * back what ends the listening.
 */
export function onStopSignal(stop: (signal: string) => void, insistedExitCode: number): () => void {
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
