/** The progress of a long command: a bar at a terminal, a plain line every 10 seconds elsewhere. */
import { renderCount, renderDuration } from "../../client/files/renderer.ts";
import type { Terminal } from "./terminal.ts";

interface ProgressState {
  readonly count: number;
  /** From 0 to 1; absent if the total is unknown. */
  readonly share?: number | undefined;
}

const drawEveryMs = 100;
const sayEveryMs = 10_000;
/** Requests that take longer are being retried. */
const waitingAfterMs = 2_000;
const barColumns = 24;
const columnsDefault = 80;
const clearLine = "\r\x1b[2K";

/** Shows progress while `work` is under way. `read` is called each time that it is shown. */
export async function withProgress<Result>(
  terminal: Terminal,
  read: () => ProgressState,
  work: () => Promise<Result>,
): Promise<Result> {
  const startedAtMs = performance.now();
  let last = { count: 0, atMs: startedAtMs };
  const show = () => {
    const nowMs = performance.now();
    const state = read();
    if (state.count !== last.count) last = { count: state.count, atMs: nowMs };
    const isWaiting = nowMs - last.atMs > waitingAfterMs;
    const line = renderProgress(state, nowMs - startedAtMs, isWaiting);
    if (terminal.draw === undefined) return terminal.say(line);
    const drawn = `${renderBar(state.share)}${line}`;
    terminal.draw(clearLine + drawn.slice(0, (terminal.columns ?? columnsDefault) - 1));
  };
  const timer = setInterval(show, terminal.draw ? drawEveryMs : sayEveryMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    terminal.draw?.(clearLine);
  }
}

function renderBar(share = 0): string {
  const filled = Math.round(barColumns * Math.min(1, share));
  return share === 0 ? "" : `${"█".repeat(filled)}${"░".repeat(barColumns - filled)} `;
}

function renderProgress(
  { count, share = 0 }: ProgressState,
  elapsedMs: number,
  isWaiting = false,
): string {
  const parts = [renderCount(count, "plant"), renderRate(count, elapsedMs)];
  if (share > 0) parts.unshift(`${Math.floor(share * 100)} %`);
  if (isWaiting) parts.push("waiting for the service");
  else if (share > 0) parts.push(`${renderDuration((elapsedMs * (1 - share)) / share)} left`);
  return parts.join(", ");
}

function renderRate(count: number, elapsedMs: number): string {
  return `${renderCount(Math.round((count * 1_000) / Math.max(1, elapsedMs)))}/s`;
}
