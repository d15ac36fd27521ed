/** The progress of a long command: a bar at a terminal, a plain line every 10 seconds elsewhere. */
import type { Terminal } from "./terminal.ts";

export interface ProgressState {
  readonly count: number;
  /** From 0 to 1; absent if the total is unknown. */
  readonly share?: number | undefined;
}

const drawEveryMs = 100;
const sayEveryMs = 10_000;
/** Requests that take longer are being retried. */
const waitingAfterMs = 2_000;
const barColumns = 24;

export class Progress {
  readonly #terminal: Terminal;
  readonly #read: () => ProgressState;
  readonly #startedAtMs = performance.now();
  readonly #timer: Timer;
  #lastCount = 0;
  #changedAtMs = performance.now();

  /** `read` is called each time that the progress is shown. */
  constructor(terminal: Terminal, read: () => ProgressState) {
    this.#terminal = terminal;
    this.#read = read;
    this.#timer = setInterval(() => this.#show(), terminal.draw ? drawEveryMs : sayEveryMs);
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedAtMs;
  }

  end(): void {
    clearInterval(this.#timer);
    this.#terminal.draw?.("\r\x1b[2K");
  }

  #show(): void {
    const { draw, say, columns = 80 } = this.#terminal;
    const state = this.#read();
    if (state.count !== this.#lastCount) this.#changedAtMs = performance.now();
    this.#lastCount = state.count;
    const isWaiting = performance.now() - this.#changedAtMs > waitingAfterMs;
    const line = renderProgress(state, this.elapsedMs, isWaiting);
    if (draw) draw(`\r\x1b[2K${`${renderBar(state.share)}${line}`.slice(0, columns - 1)}`);
    else say(line);
  }
}

function renderBar(share = 0): string {
  const filled = Math.round(barColumns * Math.min(1, share));
  return share === 0 ? "" : `${"█".repeat(filled)}${"░".repeat(barColumns - filled)} `;
}

export function renderProgress(
  { count, share = 0 }: ProgressState,
  elapsedMs: number,
  isWaiting = false,
): string {
  const parts = [`${count.toLocaleString("en")} plants`, renderRate(count, elapsedMs)];
  if (share > 0) parts.unshift(`${Math.floor(share * 100)} %`);
  if (isWaiting) parts.push("waiting for the service");
  else if (share > 0) parts.push(`${renderDuration((elapsedMs * (1 - share)) / share)} left`);
  return parts.join(", ");
}

/** Such as `1:05 (12,500/s)`. */
export function renderTook(count: number, elapsedMs: number): string {
  return `${renderDuration(elapsedMs)} (${renderRate(count, elapsedMs)})`;
}

function renderRate(count: number, elapsedMs: number): string {
  return `${Math.round((count * 1_000) / Math.max(1, elapsedMs)).toLocaleString("en")}/s`;
}

export function renderDuration(durationMs: number): string {
  const seconds = Math.max(0, Math.round(durationMs / 1_000));
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60];
  if (seconds >= 3_600) parts.unshift(Math.floor(seconds / 3_600));
  return parts.map((part, index) => String(part).padStart(index === 0 ? 1 : 2, "0")).join(":");
}
