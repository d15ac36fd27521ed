/** One line per event: JSON for machines, text for a person at a terminal. Never a token. */

export type LogFormat = "json" | "text" | "off";

/** The least important first. */
const logLevels = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof logLevels)[number];

export interface LoggedCaller {
  readonly user: string;
  readonly garden: string;
  /** Which token it was; absent for a JWT without a `jti`. */
  readonly tokenId?: string | undefined;
}

export interface RequestLine {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** Absent if it isn't known. */
  readonly caller: LoggedCaller | undefined;
  /** Why a JWT was refused: the claim or the part of it. */
  readonly tokenError?: string | undefined;
  readonly requestId: string;
  /** Absent if the client sent none. */
  readonly traceId?: string | undefined;
}

export interface Log {
  readonly format: LogFormat;
  /** Lines below it are left out. */
  readonly level: LogLevel;
  request(level: LogLevel, line: RequestLine): void;
  event(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Writes lines that another thread rendered. */
  pass(lines: string): void;
  /** Writes what is still buffered. */
  flush(): void;
}

/** Lines are buffered: at most for this long, and up to this much. */
const flushMs = 50;
const flushCharacters = 64 * 1024;

export function createLog(
  format: LogFormat,
  write: (text: string) => void,
  level: LogLevel = "info",
): Log {
  if (format === "off") return { format, level, request() {}, event() {}, pass() {}, flush() {} };
  const lowest = logLevels.indexOf(level);
  const isShown = (each: LogLevel) => logLevels.indexOf(each) >= lowest;
  let buffer = "";
  let timer: Timer | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const text = buffer;
    buffer = "";
    if (text !== "") write(text);
  }

  function add(lines: string): void {
    buffer += lines;
    if (buffer.length >= flushCharacters) flush();
    else timer ??= setTimeout(flush, flushMs);
  }

  const render = format === "json" ? jsonLines : textLines;
  return {
    format,
    level,
    request(each, line) {
      if (isShown(each)) add(`${render.request(Date.now(), each, line)}\n`);
    },
    event(each, message, fields = {}) {
      if (isShown(each)) add(`${render.event(Date.now(), each, message, fields)}\n`);
    },
    pass: add,
    flush,
  };
}

const jsonLines = {
  /** By hand: it is on the path of every request, and most of it needs no quoting. */
  request(nowMs: number, level: LogLevel, line: RequestLine): string {
    const { method, route, status, durationMs, caller, requestId, traceId } = line;
    const who = caller === undefined ? "" : jsonOfCaller(caller);
    const reason = line.tokenError === undefined ? "" : `,"tokenError":${quote(line.tokenError)}`;
    const trace = traceId === undefined ? "" : `,"traceId":"${traceId}"`;
    return (
      `{"time":"${isoTime(nowMs)}","level":"${level}","event":"request","method":"${method}",` +
      `"route":"${route}","status":${status},"durationMs":${toThousandths(durationMs)}${who}${reason},` +
      `"requestId":"${requestId}"${trace}}`
    );
  },
  event(nowMs: number, level: LogLevel, event: string, fields: Readonly<Record<string, unknown>>) {
    return JSON.stringify({ time: isoTime(nowMs), level, event, ...fields }, showError);
  },
};

/** Rendered once for each cached token: many lines have the same caller. */
const renderedCallers = new WeakMap<LoggedCaller, string>();

function jsonOfCaller(caller: LoggedCaller): string {
  let text = renderedCallers.get(caller);
  if (text === undefined) {
    const { user, garden, tokenId } = caller;
    const id = tokenId === undefined ? "" : `,"tokenId":${quote(tokenId)}`;
    text = `,"user":${quote(user)},"garden":${quote(garden)}${id}`;
    renderedCallers.set(caller, text);
  }
  return text;
}

function quote(text: string): string {
  return /^[\w.@-]*$/.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Three decimals, by way of integers, which turn into text much faster than fractions. */
function toThousandths(value: number): string {
  const thousandths = Math.round(value * 1000);
  const whole = Math.floor(thousandths / 1000);
  const rest = thousandths - whole * 1000;
  if (rest === 0) return String(whole);
  return `${whole}.${rest < 10 ? "00" : rest < 100 ? "0" : ""}${rest}`;
}

let shownMs = Number.NaN;
let shownTime = "";

/** Many lines have the same millisecond. */
function isoTime(nowMs: number): string {
  if (nowMs !== shownMs) {
    shownMs = nowMs;
    shownTime = new Date(nowMs).toISOString();
  }
  return shownTime;
}

const textLines = {
  /** The status shows how important it is. */
  request(nowMs: number, _level: LogLevel, line: RequestLine): string {
    const { method, route, status, durationMs, caller, tokenError } = line;
    const { user, garden, tokenId } = caller ?? {};
    const name = user === garden ? user : `${user} in ${garden}`;
    const parts = [name, tokenId && `(token ${tokenId})`, tokenError && `token: ${tokenError}`];
    const who = parts.filter(Boolean).join(" ") || "-";
    const took = `${durationMs.toFixed(1)} ms`;
    return `${clockTime(nowMs)}  ${method} ${route === "none" ? "-" : route} ${status}  ${took}  ${who}  ${line.requestId}`;
  },
  event(nowMs: number, level: LogLevel, event: string, fields: Readonly<Record<string, unknown>>) {
    const details = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${JSON.stringify(showError(name, value))}`)
      .join(" ");
    return `${clockTime(nowMs)}  ${level === "info" ? "" : `${level}: `}${event} ${details}`.trimEnd();
  },
};

function clockTime(nowMs: number): string {
  return new Date(nowMs).toTimeString().slice(0, 8);
}

/** Errors are logged in full, with stack and cause. */
function showError(_name: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { name, message, stack, cause } = value;
  return { name, message, stack, cause: showError("cause", cause) };
}
