/** The terminal of a command: results in full, messages if they can be written, and tables. */
import { fstatSync, writeSync } from "node:fs";
import type { TokenRecord } from "../domain/token.ts";
import type { Environment } from "../shared/config.ts";
import { toFileError } from "../shared/system-errors.ts";
import { showSafely } from "../shared/text.ts";

/** All that a command has of the process: its environment, its input, and where its output goes. */
export interface Terminal {
  readonly env: Environment;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Whether a person reads standard output. */
  readonly isStdoutTty: boolean;
  /** Whether a person reads standard error. */
  readonly isStderrTty: boolean;
  /** Writes a result. */
  out(text: string): void;
  /** Writes a message for a person. */
  say(text: string): void;
  /** Asks a question that takes a yes or no. Returns nothing if there is nobody to ask. */
  confirm?(question: string): Promise<boolean | undefined>;
  /** Draws one line again and again. Absent if nobody watches it. */
  draw?(line: string): void;
}

const drawEveryMs = 250;

/** Shows how far `work` is while it is under way, or that it stops, if somebody watches. */
export async function withProgress<Result>(
  { draw }: Terminal,
  describe: () => string,
  work: () => Promise<Result>,
  stop?: AbortSignal,
): Promise<Result> {
  if (draw === undefined) return work();
  const show = () => draw(stop?.aborted ? "Stopping…" : describe());
  const timer = setInterval(show, drawEveryMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    draw("");
  }
}

export function openTerminal(): Terminal {
  const isStdoutTty = isTerminal(1);
  const isStderrTty = isTerminal(2);
  return {
    env: process.env,
    // Only when it's needed: the stream takes milliseconds to create.
    get stdin() {
      return process.stdin;
    },
    isStdoutTty,
    isStderrTty,
    out: (text) => writeResult(1, isStdoutTty ? showLines(text) : text, "standard output"),
    say: (text) => writeMessage(`${showLines(text)}\n`),
    async confirm(question) {
      if (!process.stderr.isTTY || !process.stdin.isTTY) return undefined;
      writeMessage(`${showLines(question)} [y/N] `);
      for await (const line of process.stdin) return /^y(?:es)?\s*$/i.test(String(line));
      return false;
    },
    // A dumb terminal would show the escape codes themselves.
    ...(isStderrTty &&
      process.env.TERM !== "dumb" && { draw: (line) => writeMessage(`\r\x1b[2K${line}`) }),
  };
}

/**
 * The runtime's stream knows, but takes 10 to 20 ms to create. Nobody sees what the null device
 * gets, which is the other character device.
 */
function isTerminal(descriptor: 1 | 2): boolean {
  return fstatSync(descriptor).isCharacterDevice();
}

/** As after SIGPIPE: nobody reads the results any more. */
const unreadExitCode = 141;
const pauseMs = 5;

/**
 * Writes all of it, and ends the process if its reader went away. Throws an error that names the
 * target if it cannot be written.
 */
export function writeResult(descriptor: number, text: string, target: string): void {
  try {
    if (!writeAll(descriptor, text)) process.exit(unreadExitCode);
  } catch (error) {
    throw toFileError("write", target, error);
  }
}

/** If it cannot be written, work goes on. */
function writeMessage(text: string): void {
  try {
    writeAll(2, text);
  } catch {}
}

/** Waits for a slow reader. Returns false if the reader went away. */
function writeAll(descriptor: number, text: string): boolean {
  let bytes = Buffer.from(text);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(descriptor, bytes));
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "EPIPE") return false;
      if (code !== "EAGAIN") throw error;
      Bun.sleepSync(pauseMs);
    }
  }
  return true;
}

/** A longer cell doesn't widen its column; it only shifts the rest of its line. */
const columnWidthMax = 40;

/**
 * Lines with aligned columns. Wide characters take two columns. For a table that comes in parts,
 * pass the same `widths` with each.
 */
export function renderTable(rows: readonly (readonly string[])[], widths: number[] = []): string {
  const shown = rows.map((row) => row.map(showSafely));
  for (const row of shown) {
    for (const [column, cell] of row.entries()) {
      const width = Math.min(Bun.stringWidth(cell), columnWidthMax);
      widths[column] = Math.max(widths[column] ?? 0, width);
    }
  }
  const pad = (cell: string, column: number) =>
    cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell)));
  return shown.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}

/** `2026-08-01 14:05 +02:00`, in the process's time zone. */
export function renderTime(timeMs: number): string {
  const offset = -new Date(timeMs).getTimezoneOffset();
  const local = new Date(timeMs + offset * 60_000).toISOString();
  const pad = (part: number) => String(Math.floor(part)).padStart(2, "0");
  const [hours, minutes] = [Math.abs(offset) / 60, Math.abs(offset) % 60];
  const zone = offset === 0 ? "UTC" : `${offset < 0 ? "-" : "+"}${pad(hours)}:${pad(minutes)}`;
  return `${local.slice(0, 10)} ${local.slice(11, 16)} ${zone}`;
}

/** For JSON. */
export function toIsoTime(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}

type Access = Pick<TokenRecord, "user" | "garden" | "scope" | "expiresAtMs">;

/** What a token allows, such as `alice can read and write the garden "alice" (never expires)`. */
export function describeAccess({ user, garden, scope, expiresAtMs }: Access): string {
  const allowed = scope === "write" ? "read and write" : "read";
  const end = expiresAtMs === undefined ? "never expires" : `expires ${renderTime(expiresAtMs)}`;
  return showSafely(`${user} can ${allowed} the garden "${garden}" (${end})`);
}

/** CSV starts with it, for spreadsheets. A screen has no use for it. */
const byteOrderMark = /^\ufeff/;

/** `showSafely` for whole lines: their ends stay. All that goes to a terminal passes here. */
export function showLines(text: string): string {
  return text
    .replace(byteOrderMark, "")
    .split(/(\r?\n)/)
    .map((part, index) => (index % 2 === 0 ? showSafely(part) : part))
    .join("");
}
