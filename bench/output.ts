/**
 * What the benchmark says while it runs: one updating line at a terminal, plain lines elsewhere.
 */

const isTerminal = process.stdout.isTTY === true;
const startedAtMs = performance.now();
let isLineOpen = false;

/** Says what is being done now. At a terminal the next call replaces it. */
export function showProgress(text: string): void {
  const line = `${elapsed()}  ${text}`;
  if (!isTerminal) {
    write(`${line}\n`);
    return;
  }
  const columns = process.stdout.columns ?? 80;
  write(`\r\x1b[2K${line.slice(0, columns - 1)}`);
  isLineOpen = true;
}

/** Says something that stays. */
export function say(text: string): void {
  if (isLineOpen) write("\r\x1b[2K");
  isLineOpen = false;
  write(`${text}\n`);
}

export function complain(text: string): void {
  if (isLineOpen) write("\r\x1b[2K");
  isLineOpen = false;
  process.stderr.write(`${text}\n`);
}

function write(text: string): void {
  process.stdout.write(text);
}

function elapsed(): string {
  const seconds = Math.floor((performance.now() - startedAtMs) / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
