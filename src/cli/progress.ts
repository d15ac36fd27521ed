/** The progress of a long command: a bar at a terminal, a plain line every 10 seconds elsewhere. */
import type { Terminal } from "./command.ts";

export interface ProgressState {
  readonly count: number;
  /** From 0 to 1; absent if the total is unknown. */
  readonly share?: number | undefined;
}

const drawEveryMs = 100;
const sayEveryMs = 10_000;
const barColumns = 24;

export class Progress {
  readonly #terminal: Terminal;
  readonly #read: () => ProgressState;
  readonly #hasBar: boolean;
  readonly #startedAtMs = performance.now();
  readonly #timer: Timer;

  /** `read` is called each time that the progress is shown. */
  constructor(terminal: Terminal, read: () => ProgressState) {
    this.#terminal = terminal;
    this.#read = read;
    this.#hasBar = terminal.isWatched && terminal.draw !== undefined;
    const everyMs = this.#hasBar ? drawEveryMs : sayEveryMs;
    this.#timer = setInterval(() => this.#show(), everyMs);
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedAtMs;
  }

  /** Prints a line above the bar. */
  say(text: string): void {
    this.#clear();
    this.#terminal.say(text);
  }

  end(): void {
    clearInterval(this.#timer);
    this.#clear();
  }

  #show(): void {
    const line = renderProgress(this.#read(), this.elapsedMs, this.#hasBar);
    if (!this.#hasBar) this.#terminal.say(line);
    else this.#terminal.draw?.(`\r\x1b[2K${line.slice(0, (this.#terminal.columns ?? 80) - 1)}`);
  }

  #clear(): void {
    if (this.#hasBar) this.#terminal.draw?.("\r\x1b[2K");
  }
}

export function renderProgress(state: ProgressState, elapsedMs: number, hasBar: boolean): string {
  const { count, share } = state;
  const parts = [`${count.toLocaleString("en")} plants`, renderRate(count, elapsedMs)];
  if (share !== undefined && share > 0) {
    const filled = Math.round(barColumns * Math.min(1, share));
    const bar = "█".repeat(filled) + "░".repeat(barColumns - filled);
    parts.unshift(`${hasBar ? `${bar} ` : ""}${Math.floor(share * 100)} %`);
    parts.push(`${renderDuration((elapsedMs * (1 - share)) / share)} left`);
  }
  return parts.join(", ");
}

export function renderRate(count: number, elapsedMs: number): string {
  return `${Math.round((count * 1_000) / Math.max(1, elapsedMs)).toLocaleString("en")}/s`;
}

export function renderDuration(durationMs: number): string {
  const seconds = Math.max(0, Math.round(durationMs / 1_000));
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60];
  if (seconds >= 3_600) parts.unshift(Math.floor(seconds / 3_600));
  return parts.map((part, index) => String(part).padStart(index === 0 ? 1 : 2, "0")).join(":");
}
