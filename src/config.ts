/** Settings: a flag, else the environment, else the default. The only reader of the environment. */
import { availableParallelism } from "node:os";
import { PlantStoreError } from "./domain/errors.ts";
import type { JwtIssuer } from "./domain/issuer.ts";
import type { UsageLimits } from "./domain/limits.ts";
import { type ConnectionLimits, defaultConnectionLimits } from "./domain/storage.ts";
import { type LimitSettings, limitSettings, readUsageLimits } from "./settings/limit-settings.ts";
import {
  readIssuer,
  readTlsFiles,
  type SecuritySettings,
  securitySettings,
  type TlsFiles,
} from "./settings/security-settings.ts";
import { databaseAddress, integerBetween, quoteText, type Setting } from "./settings/setting.ts";
import {
  readTracing,
  type Tracing,
  type TracingSettings,
  tracingSettings,
} from "./settings/tracing-settings.ts";

export { quoteText };

const logChoices = ["auto", "json", "text", "off"] as const;

/** Each thread holds its own memory, and beyond a few the one that commits is the limit. */
const automaticThreadsMax = 4;
const threadsMax = 64;

interface ServiceSettings {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly databasePoolSize: number;
  readonly databaseConnectTimeoutMs: number;
  readonly databaseStatementTimeoutMs: number;
  readonly basePath: string;
  readonly corsOrigins: "*" | readonly string[];
  readonly log: (typeof logChoices)[number];
  readonly threads: number | "auto";
  readonly copyFrom: string;
  readonly copyTo: string;
}

type LimitName = "databasePoolSize" | "databaseConnectTimeoutMs" | "databaseStatementTimeoutMs";

export interface Config
  extends Omit<ServiceSettings, LimitName | "threads" | "copyFrom" | "copyTo"> {
  readonly limits: ConnectionLimits;
  readonly threads: number;
  /** Absent: plain HTTP. */
  readonly tls: TlsFiles | undefined;
  /** Absent: no JWT is accepted. */
  readonly jwt: JwtIssuer | undefined;
  /** Absent: no traces. */
  readonly tracing: Tracing | undefined;
  readonly usage: UsageLimits;
}

/** What a command needs that talks to a service. The token comes by `readToken`. */
export interface ClientConfig {
  readonly url: string;
}

type Settings = ServiceSettings & SecuritySettings & LimitSettings & TracingSettings & ClientConfig;
export type SettingName = keyof Settings;

export const settings: { readonly [Name in SettingName]: Setting<Settings[Name]> } = {
  host: {
    flag: "host",
    environment: "PLANTSTORE_HOST",
    placeholder: "ADDRESS",
    fallback: "127.0.0.1",
    help: "address to listen on",
    parse: (text) => (/^[\w.:-]+$/.test(text) ? text : undefined),
    expected: "an IP address or a host name",
  },
  port: {
    flag: "port",
    environment: "PLANTSTORE_PORT",
    placeholder: "NUMBER",
    fallback: "8080",
    help: "port to listen on; 0 takes any free one",
    ...integerBetween(0, 65_535),
  },
  database: {
    flag: "database",
    environment: "PLANTSTORE_DATABASE",
    placeholder: "FILE|URL",
    fallback: "data/plants.db",
    help: "the SQLite file that keeps the plants, or postgres://user@host/database",
    ...databaseAddress(),
  },
  databasePoolSize: {
    flag: "database-pool-size",
    environment: "PLANTSTORE_DATABASE_POOL_SIZE",
    placeholder: "NUMBER",
    fallback: String(defaultConnectionLimits.poolSize),
    help: "connections to PostgreSQL at the most",
    ...integerBetween(1, 1_000),
  },
  databaseConnectTimeoutMs: {
    flag: "database-connect-timeout-ms",
    environment: "PLANTSTORE_DATABASE_CONNECT_TIMEOUT_MS",
    placeholder: "NUMBER",
    fallback: String(defaultConnectionLimits.connectTimeoutMs),
    help: "how long PostgreSQL may take to accept a connection, or to be found",
    ...integerBetween(100, 20_000),
  },
  databaseStatementTimeoutMs: {
    flag: "database-statement-timeout-ms",
    environment: "PLANTSTORE_DATABASE_STATEMENT_TIMEOUT_MS",
    placeholder: "NUMBER",
    fallback: String(defaultConnectionLimits.statementTimeoutMs),
    help: "how long PostgreSQL may take to answer",
    ...integerBetween(100, 8_000),
  },
  basePath: {
    flag: "base-path",
    environment: "PLANTSTORE_BASE_PATH",
    placeholder: "PATH",
    fallback: "",
    help: "path that all paths of the service start with, such as /v1",
    parse: (text) =>
      /^(?:\/(?!\.)[\w.~-]+)*\/?$/.test(text) ? text.replace(/\/$/, "") : undefined,
    expected: "a path such as /v1",
  },
  corsOrigins: {
    flag: "cors-origins",
    environment: "PLANTSTORE_CORS_ORIGINS",
    placeholder: "LIST",
    fallback: "*",
    help: "origins whose pages may call, separated by commas; * for all",
    parse: parseOrigins,
    expected: "* or origins such as https://plants.example, separated by commas",
  },
  log: {
    flag: "log",
    environment: "PLANTSTORE_LOG",
    placeholder: logChoices.join("|"),
    fallback: "auto",
    help: "form of the log; auto: text at a terminal, else json",
    parse: (text) => logChoices.find((choice) => choice === text),
    expected: `one of ${logChoices.join(", ")}`,
  },
  threads: {
    flag: "threads",
    environment: "PLANTSTORE_THREADS",
    placeholder: "NUMBER|auto",
    fallback: "auto",
    help: `threads that answer; auto: one for each processor, up to ${automaticThreadsMax}, and 1 on PostgreSQL`,
    parse: parseThreads,
    expected: `auto or a number from 1 to ${threadsMax}`,
  },
  ...securitySettings,
  ...tracingSettings,
  ...limitSettings,
  url: {
    flag: "url",
    environment: "PLANTSTORE_URL",
    placeholder: "URL",
    fallback: "http://127.0.0.1:8080",
    help: "where the service is, with its base path",
    parse: (text) =>
      /^https?:\/\/[^/?#@]/.test(text) && URL.canParse(text) && !/[?#@\s]/.test(text)
        ? text.replace(/\/+$/, "")
        : undefined,
    expected: "an address such as https://plants.example/v1",
  },
  copyFrom: {
    flag: "from",
    environment: "PLANTSTORE_COPY_FROM",
    placeholder: "FILE|URL",
    fallback: "",
    help: "what is copied: a SQLite file, or postgres://user@host/database",
    ...databaseAddress(),
  },
  copyTo: {
    flag: "to",
    environment: "PLANTSTORE_COPY_TO",
    placeholder: "FILE|URL",
    fallback: "",
    help: "where it is copied to; a file is made if missing",
    ...databaseAddress(),
  },
};

export type Environment = Readonly<Record<string, string | undefined>>;
export type Flags = Readonly<Record<string, unknown>>;

export function readConfig(flags: Flags, environment: Environment = process.env): Config {
  const read = <Name extends SettingName>(name: Name) => readSetting(name, flags, environment);
  const database = read("database");
  const wanted = read("threads");
  const threads = wanted === "auto" ? automaticThreads(database) : wanted;
  const limits = readLimits(flags, environment);
  if (isPostgres(database) && threads > limits.poolSize) {
    throw new PlantStoreError(
      "invalid-request",
      "--threads must not be more than --database-pool-size: each thread needs a connection.",
    );
  }
  return Object.freeze({
    host: read("host"),
    port: read("port"),
    database,
    limits,
    basePath: read("basePath"),
    corsOrigins: read("corsOrigins"),
    log: read("log"),
    threads,
    tls: readTlsFiles(read),
    jwt: readIssuer(read),
    tracing: readTracing(read),
    usage: readUsageLimits(read),
  });
}

/** Fails with `invalid-request`, in one line that names the flag or variable. */
export function readSetting<Name extends SettingName>(
  name: Name,
  flags: Flags,
  environment: Environment = process.env,
): Settings[Name] {
  const setting = settings[name];
  const flag = flags[setting.flag];
  const variable = environment[setting.environment];
  const text = typeof flag === "string" ? flag : (variable ?? setting.fallback);
  const value = setting.parse(text);
  if (value !== undefined) return value;
  const isVariable = typeof flag !== "string" && variable !== undefined;
  const source = isVariable ? setting.environment : `--${setting.flag}`;
  const shown = setting.isSecret ? "" : `, not ${quoteText(text)}`;
  const given = text === "" ? ", and is missing" : shown;
  throw new PlantStoreError("invalid-request", `${source} must be ${setting.expected}${given}.`);
}

/** Whether it does not have its default. */
export function isGiven(name: SettingName, flags: Flags, environment = process.env): boolean {
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

export function readLimits(flags: Flags, environment: Environment = process.env): ConnectionLimits {
  return {
    poolSize: readSetting("databasePoolSize", flags, environment),
    connectTimeoutMs: readSetting("databaseConnectTimeoutMs", flags, environment),
    statementTimeoutMs: readSetting("databaseStatementTimeoutMs", flags, environment),
  };
}

/** From the environment: other users of the machine can see the flags of a process. */
export function readToken(suffix = "", environment: Environment = process.env): string {
  return environment[`PLANTSTORE_TOKEN${suffix}`] ?? "";
}

/** A dumb terminal would show the codes themselves. */
export const mayDraw = (environment: Environment = process.env) => environment.TERM !== "dumb";

/** As of no-color.org. */
export function mayColor(environment: Environment = process.env): boolean {
  return !environment.NO_COLOR && mayDraw(environment);
}

function parseOrigins(text: string): Config["corsOrigins"] | undefined {
  if (text === "*") return "*";
  const origins = text.split(",").map((origin) => origin.trim().toLowerCase());
  const isOrigin = (one: string) => /^https?:[^*]+$/.test(one) && URL.parse(one)?.origin === one;
  return origins.every(isOrigin) ? origins : undefined;
}

function parseThreads(text: string): Settings["threads"] | undefined {
  if (text === "auto") return text;
  const threads = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  return threads >= 1 && threads <= threadsMax ? threads : undefined;
}

function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:/i.test(database);
}

/**
 * Only Linux shares the connections of a port out among its listeners. On PostgreSQL each thread
 * commits for itself, so more of them make smaller groups: there, instances are added instead.
 */
function automaticThreads(database: string): number {
  const isAlone = process.platform !== "linux" || isPostgres(database);
  return isAlone ? 1 : Math.min(availableParallelism(), automaticThreadsMax);
}
