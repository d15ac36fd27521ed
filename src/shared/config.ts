/** Reads settings: from a flag, else from the environment, else the default. */
import { availableParallelism } from "node:os";
import { PlantStoreError } from "../domain/errors.ts";
import { engineOf } from "../storage/open.ts";
import { type ConnectionLimits, defaultConnectionLimits } from "../storage/storage.ts";

/** Reads and checks the text of a setting or a flag. */
export interface Parser<Value> {
  /** Absent if the text is not valid. */
  readonly parse: (text: string) => Value | undefined;
  /** What a valid text is, after "must be". */
  readonly expected: string;
  /** The text may hold a password, so errors and the log don't show it. */
  readonly isSecret?: true;
}

interface Setting<Value> extends Parser<Value> {
  readonly flag: string;
  readonly environment: string;
  readonly placeholder: string;
  readonly fallback: string;
  readonly help: string;
}

/** A row of the table. `--port` is also `PLANTSTORE_PORT`. */
function row<Value>(
  usage: string,
  fallback: string | number,
  help: string,
  parser: Parser<Value>,
): Setting<Value> {
  const [flag = "", placeholder = ""] = usage.slice("--".length).split(" ");
  return {
    flag,
    environment: `PLANTSTORE_${flag.toUpperCase().replaceAll("-", "_")}`,
    placeholder,
    fallback: String(fallback),
    help,
    ...parser,
  };
}

const path = text("the path of a file", () => true);
const hostName = text("an IP address or a host name", (value) => /^[\w.:-]+$/.test(value));
const scopeName = text("the name of a scope", (value) => /^[!#-[\]-~]{1,200}$/.test(value));
const claimName = text("the name of a claim", (value) => /^\S{1,200}$/.test(value));
const trustedUrl = text(
  "an address such as https://login.example; http only on this machine",
  (value) => value === "" || isTrusted(value),
);
/** Nothing, quotes, `:memory:`, or a URL, even a misspelled one, which may hold a password. */
const notPath = /^(?:$|["':]|[a-z][a-z\d+.-]*:)|:\/\/|\/\/[^/]*:[^/]*@/is;
const databaseAddress: Parser<string> = {
  ...text(
    "the path of a file or the URL of a PostgreSQL database, without quotes",
    (value) => !engineOf(value).isFile || !notPath.test(value),
  ),
  isSecret: true,
};
const serviceUrl = parser("an address such as https://plants.example/v1", (value) =>
  /^https?:\/\/[^/?#@]/.test(value) && URL.canParse(value) && !/[?#@\s]/.test(value)
    ? value.replace(/\/+$/, "")
    : undefined,
);
const basePath = parser("a path such as /v1", (value) =>
  /^(?:\/(?!\.)[\w.~-]+)*\/?$/.test(value) ? value.replace(/\/$/, "") : undefined,
);
const origins = parser(
  "* or origins such as https://plants.example, separated by commas",
  parseOrigins,
);
const audiences = parser("names such as https://plants.example, separated by commas", (value) => {
  const names: readonly string[] = value === "" ? [] : value.split(",").map((name) => name.trim());
  return names.includes("") ? undefined : names;
});
const duration = parser("a time of at least 1m, such as 7d, 12h or 90m", (value) => {
  const durationMs = parseDuration(value);
  return durationMs >= 60_000 ? durationMs : undefined;
});
const rate = parser("a rate from 1/d to 1000000/s, such as 100/60s or 5000/h", parseRate);

/** Threads cost memory, and beyond a few of them the committing thread is the bottleneck. */
const automaticThreadsMax = 4;
const { poolSize, connectTimeoutMs, statementTimeoutMs } = defaultConnectionLimits;

// biome-ignore format: a table.
export const settings = {
  host: row("--host ADDRESS", "127.0.0.1", "address that the service listens on", hostName),
  port: row("--port NUMBER", 8080,
    "port that the service listens on; serve --port 0 takes any free one", integer(0, 65_535)),
  database: row("--database FILE|URL", "data/plants.db",
    "the SQLite file that keeps the plants, or postgres://user@host/database", databaseAddress),
  databasePoolSize: row("--database-pool-size NUMBER", poolSize,
    "maximum number of connections to PostgreSQL", integer(1, 1_000)),
  databaseConnectTimeoutMs: row("--database-connect-timeout-ms NUMBER", connectTimeoutMs,
    "how long connecting to PostgreSQL may take", integer(100, 20_000)),
  databaseStatementTimeoutMs: row("--database-statement-timeout-ms NUMBER", statementTimeoutMs,
    "how long PostgreSQL may take to respond", integer(100, 8_000)),
  basePath: row("--base-path PATH", "",
    "path that all paths of the service start with, such as /v1", basePath),
  corsOrigins: row("--cors-origins LIST", "*",
    "origins whose pages may call, separated by commas; * for all", origins),
  log: row("--log auto|json|text|off", "auto",
    "format of the log; auto: text at a terminal, else json", choice("auto", "json", "text", "off")),
  logLevel: row("--log-level debug|info|warn|error", "info",
    "lowest level to log; debug includes successful probes", choice("debug", "info", "warn", "error")),
  threads: row("--threads NUMBER|auto", "auto",
    `threads that serve; auto: one per processor, up to ${automaticThreadsMax}; 1 on PostgreSQL and macOS`,
    or("auto", integer(1, 64))),
  tlsCert: row("--tls-cert PATH", "",
    "certificate and its chain (PEM), for https", path),
  tlsKey: row("--tls-key PATH", "", "the certificate's private key (PEM)", path),
  jwtIssuer: row("--jwt-issuer URL", "",
    "the OpenID issuer whose JWTs are accepted as tokens", trustedUrl),
  jwtAudience: row("--jwt-audience LIST", "",
    "accepted audiences (claim aud), separated by commas", audiences),
  jwtJwksUrl: row("--jwt-jwks-url URL", "",
    "where the issuer's keys are; by default its discovery document says so", trustedUrl),
  jwtGardenClaim: row("--jwt-garden-claim NAME", "sub",
    "the claim of JWTs that names the garden", claimName),
  jwtScopeClaim: row("--jwt-scope-claim NAME", "scope",
    "the claim of JWTs that lists scopes: words in a string, or an array", claimName),
  jwtReadScope: row("--jwt-read-scope NAME", "read",
    "the scope that lets a JWT read, such as plants:read", scopeName),
  jwtWriteScope: row("--jwt-write-scope NAME", "write",
    "the scope that lets a JWT read and write", scopeName),
  rateLimit: row("--rate-limit RATE|off", "off",
    "requests that a token may make, such as 100/60s or 5000/h", or("off", rate)),
  gardenPlantsMax: row("--garden-plants-max NUMBER|off", "off",
    "how many plants a garden may hold", or("off", integer(1, 999_999_999))),
  events: row("--events TIME|off", "7d",
    "how long to keep the events of gardens, such as 7d or 12h", or("off", duration)),
  url: row("--url URL", "http://127.0.0.1:8080",
    "where the service is, with its base path", serviceUrl),
};

export type SettingName = keyof typeof settings;
type ValueOf<Name extends SettingName> = Exclude<
  ReturnType<(typeof settings)[Name]["parse"]>,
  undefined
>;

export type Environment = Readonly<Record<string, string | undefined>>;
export type Flags = Readonly<Record<string, unknown>>;
export type Config = Readonly<ReturnType<typeof readConfig>>;

/** Groups that are off (`tls`, `jwt`, both of `usage`) are absent. */
export function readConfig(flags: Flags, environment: Environment) {
  const read = <Name extends SettingName>(name: Name) => readSetting(name, flags, environment);
  const database = read("database");
  const limits = readLimits(flags, environment);
  const requested = read("threads");
  const rateLimit = read("rateLimit");
  const plantsMax = read("gardenPlantsMax");
  const threads = requested === "auto" ? automaticThreads(database) : requested;
  if (!engineOf(database).hasOneWriter && threads > limits.poolSize) {
    throw invalid(
      "--threads must not be more than --database-pool-size: each thread needs a connection.",
    );
  }
  const tls = { cert: read("tlsCert"), key: read("tlsKey") };
  requireTogether({ "--tls-cert": tls.cert, "--tls-key": tls.key });
  const jwt = {
    issuer: read("jwtIssuer"),
    audiences: read("jwtAudience"),
    keysUrl: read("jwtJwksUrl") || undefined,
    gardenClaim: read("jwtGardenClaim"),
    scopeClaim: read("jwtScopeClaim"),
    readScope: read("jwtReadScope"),
    writeScope: read("jwtWriteScope"),
  };
  requireTogether({ "--jwt-issuer": jwt.issuer, "--jwt-audience": jwt.audiences.join() });
  if (jwt.keysUrl) requireTogether({ "--jwt-jwks-url": jwt.keysUrl, "--jwt-issuer": jwt.issuer });
  return {
    host: read("host"),
    port: read("port"),
    database,
    limits,
    basePath: read("basePath"),
    corsOrigins: read("corsOrigins"),
    log: read("log"),
    logLevel: read("logLevel"),
    threads,
    tls: tls.cert ? tls : undefined,
    jwt: jwt.issuer ? jwt : undefined,
    usage: {
      rate: rateLimit === "off" ? undefined : rateLimit,
      plantsMax: plantsMax === "off" ? undefined : plantsMax,
    },
    /** How long they are kept, in milliseconds. */
    events: read("events"),
  };
}

/** Throws `invalid-request`, in one line that names the flag or variable. */
export function readSetting<Name extends SettingName>(
  name: Name,
  flags: Flags,
  environment: Environment,
): ValueOf<Name> {
  const { flag, environment: variable, ...row } = settings[name];
  const given = flags[flag];
  const isFlag = typeof given === "string";
  const text = isFlag ? given : (environment[variable] ?? row.fallback);
  const value = row.parse(text);
  if (value !== undefined) return value as ValueOf<Name>;
  const isMissing = !isFlag && environment[variable] === undefined;
  const source = isFlag || isMissing ? `--${flag}` : variable;
  if (text === "") {
    const state = isMissing ? "missing" : "empty";
    throw invalid(`${source} is ${state}; it must be ${row.expected}.`);
  }
  const shown = row.isSecret ? "" : `, not ${quoteText(text)}`;
  throw invalid(`${source} must be ${row.expected}${shown}.`);
}

/** Whether a flag or a variable sets it. */
export function isGiven(name: SettingName, flags: Flags, environment: Environment): boolean {
  const { flag, environment: variable } = settings[name];
  return flags[flag] !== undefined || environment[variable] !== undefined;
}

/** The settings that a command needs to open a storage. */
export const storageSettings: readonly SettingName[] = [
  "database",
  "databasePoolSize",
  "databaseConnectTimeoutMs",
  "databaseStatementTimeoutMs",
];

export function readLimits(flags: Flags, environment: Environment): ConnectionLimits {
  return {
    poolSize: readSetting("databasePoolSize", flags, environment),
    connectTimeoutMs: readSetting("databaseConnectTimeoutMs", flags, environment),
    statementTimeoutMs: readSetting("databaseStatementTimeoutMs", flags, environment),
  };
}

/** An invalid text as it may be shown: an address without its user and password. */
export function quoteText(text: string): string {
  return JSON.stringify(text.replace(/\/\/.*@/s, "//…@"));
}

function invalid(message: string): PlantStoreError {
  return new PlantStoreError("invalid-request", message);
}

/** Half a pair would silently leave the service unprotected. */
function requireTogether(values: Readonly<Record<string, string>>): void {
  const names = Object.keys(values);
  const missing = names.filter((name) => values[name] === "");
  if (missing.length === 0 || missing.length === names.length) return;
  throw invalid(`${names.join(" and ")} belong together; ${missing.join()} is missing.`);
}

function parser<Value>(expected: string, parse: Parser<Value>["parse"]): Parser<Value> {
  return { parse, expected };
}

function text(expected: string, isValid: (value: string) => boolean): Parser<string> {
  return parser(expected, (value) => (isValid(value) ? value : undefined));
}

export function integer(min: number, max: number): Parser<number> {
  return parser(`a whole number from ${min} to ${max}`, (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return number >= min && number <= max ? number : undefined;
  });
}

export function choice<const Choice extends string>(...choices: readonly Choice[]): Parser<Choice> {
  return parser(`one of ${choices.join(", ")}`, (text) => choices.find((each) => each === text));
}

function or<const Word extends string, Value>(
  word: Word,
  { parse, expected }: Parser<Value>,
): Parser<Word | Value> {
  return parser(`${word} or ${expected}`, (text) => (text === word ? word : parse(text)));
}

/** Whether responses from a URL can be trusted: over TLS, or from this machine. */
function isTrusted(text: string): boolean {
  const url = URL.parse(text);
  if (url?.username !== "" || url.password !== "" || /[#\s]/.test(text)) return false;
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
}

/** Whether only this machine can reach it. URLs have brackets around an IPv6 address. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/.test(host);
}

function parseOrigins(text: string): "*" | readonly string[] | undefined {
  if (text === "*") return "*";
  const origins = text.split(",").map((origin) => origin.trim().toLowerCase());
  const isOrigin = (one: string) => /^https?:[^*]+$/.test(one) && URL.parse(one)?.origin === one;
  return origins.every(isOrigin) ? origins : undefined;
}

const unitsMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** In milliseconds; not a number if the text isn't a time such as `30d`. */
export function parseDuration(text: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  return Number(count) * (unitsMs[unit] ?? 0);
}

function parseRate(text: string) {
  const [, count, span = ""] = /^(\d{1,7})\/(.+)$/.exec(text) ?? [];
  const requests = Number(count);
  const windowSeconds = parseDuration(span.replace(/^(?=\D)/, "1")) / 1_000;
  const isValid =
    requests >= 1 && requests <= 1_000_000 && windowSeconds >= 1 && windowSeconds <= 86_400;
  return isValid ? { requests, windowSeconds } : undefined;
}

/**
 * Only Linux spreads the connections of a port over its listeners. Where each thread has its own
 * commits, more threads make smaller groups: add instances instead.
 */
function automaticThreads(database: string): number {
  const isAlone = process.platform !== "linux" || !engineOf(database).hasOneWriter;
  return isAlone ? 1 : Math.min(availableParallelism(), automaticThreadsMax);
}
