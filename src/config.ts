/** Settings: a flag, else the environment, else the default. The only reader of the environment. */
import { availableParallelism } from "node:os";
import { PlantStoreError } from "./domain/errors.ts";

const logChoices = ["auto", "json", "text", "off"] as const;

/** Each thread holds its own memory, and beyond a few the one that commits is the limit. */
const automaticThreadsMax = 4;
const threadsMax = 64;

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly basePath: string;
  readonly corsOrigins: "*" | readonly string[];
  readonly log: (typeof logChoices)[number];
  readonly threads: number;
}

interface Setting<Value> {
  readonly flag: string;
  readonly environment: string;
  readonly placeholder: string;
  readonly fallback: string;
  readonly help: string;
  /** Absent if the text makes no sense. */
  readonly parse: (text: string) => Value | undefined;
  readonly expected: string;
}

export type SettingName = keyof Config;

export const settings: { readonly [Name in SettingName]: Setting<Config[Name]> } = {
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
    parse: (text) => (/^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
    expected: "a number from 0 to 65535",
  },
  database: {
    flag: "database",
    environment: "PLANTSTORE_DATABASE",
    placeholder: "PATH",
    fallback: "data/plants.db",
    help: "the SQLite file that keeps the plants",
    parse: (text) => (text === "" || text === ":memory:" ? undefined : text),
    expected: "the path of a file",
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
    placeholder: "FORMAT",
    fallback: "auto",
    help: "json, text, off, or auto: text at a terminal, else json",
    parse: (text) => logChoices.find((choice) => choice === text),
    expected: `one of ${logChoices.join(", ")}`,
  },
  threads: {
    flag: "threads",
    environment: "PLANTSTORE_THREADS",
    placeholder: "NUMBER",
    fallback: "auto",
    help: `threads that answer; auto: one for each processor, up to ${automaticThreadsMax}`,
    parse: parseThreads,
    expected: `auto or a number from 1 to ${threadsMax}`,
  },
};

export type Environment = Readonly<Record<string, string | undefined>>;
export type Flags = Readonly<Record<string, unknown>>;

export function readConfig(flags: Flags, environment: Environment = process.env): Config {
  return Object.freeze({
    host: readSetting("host", flags, environment),
    port: readSetting("port", flags, environment),
    database: readSetting("database", flags, environment),
    basePath: readSetting("basePath", flags, environment),
    corsOrigins: readSetting("corsOrigins", flags, environment),
    log: readSetting("log", flags, environment),
    threads: readSetting("threads", flags, environment),
  });
}

/** Fails with `invalid-request`, in one line that names the flag or variable that makes no sense. */
export function readSetting<Name extends SettingName>(
  name: Name,
  flags: Flags,
  environment: Environment = process.env,
): Config[Name] {
  const setting = settings[name];
  const flag = flags[setting.flag];
  const variable = environment[setting.environment];
  const text = typeof flag === "string" ? flag : (variable ?? setting.fallback);
  const value = setting.parse(text);
  if (value !== undefined) return value;
  const source = typeof flag === "string" ? `--${setting.flag}` : setting.environment;
  throw new PlantStoreError(
    "invalid-request",
    `${source} must be ${setting.expected}, not ${JSON.stringify(text)}.`,
  );
}

function parseOrigins(text: string): Config["corsOrigins"] | undefined {
  if (text === "*") return "*";
  const origins = text.split(",").map((origin) => origin.trim().toLowerCase());
  const isOrigin = (origin: string) => /^https?:\/\/[^\s/,]+$/.test(origin);
  return origins.every(isOrigin) ? origins : undefined;
}

/** Only Linux shares the connections of a port out among its listeners. */
function parseThreads(text: string): number | undefined {
  if (text === "auto") {
    return process.platform === "linux" ? Math.min(availableParallelism(), automaticThreadsMax) : 1;
  }
  const threads = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  return threads >= 1 && threads <= threadsMax ? threads : undefined;
}
