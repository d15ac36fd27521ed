/** The progress of a long command, drawn again and again on one line of a terminal. */
import { renderCount, renderDuration } from "../../client/files/renderer.ts";
import type { Terminal } from "./terminal.ts";

interface ProgressState {
  readonly count: number;
  /** From 0 to 1; absent if the total is unknown. */
  readonly share?: number;
}

const drawEveryMs = 100;
const clearLine = "\r\x1b[2K";

/** Shows progress while `work` is under way, if somebody watches. */
export async function withProgress<Result>(
  { draw }: Terminal,
  read: () => ProgressState,
  work: () => Promise<Result>,
): Promise<Result> {
  if (draw === undefined) return work();
  const startedAtMs = performance.now();
  const show = () => draw(clearLine + renderProgress(read(), performance.now() - startedAtMs));
  const timer = setInterval(show, drawEveryMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    draw(clearLine);
  }
}

function renderProgress({ count, share = 0 }: ProgressState, elapsedMs: number): string {
  const rate = Math.round((count * 1_000) / Math.max(1, elapsedMs));
  const parts = [renderCount(count, "plant"), `${renderCount(rate)}/s`];
  if (share > 0) {
    const leftMs = (elapsedMs * (1 - share)) / share;
    parts.push(`${Math.floor(share * 100)} %`, `${renderDuration(leftMs)} left`);
  }
  return parts.join(", ");
}
