/** Settings: flag, then environment, then default; an invalid one is refused in one line. */
import { describe, expect, test } from "bun:test";
import { readConfig, readSetting, type SettingName, settings } from "./config.ts";

test("every setting has a default", () => {
  expect(readConfig({}, {})).toEqual({
    host: "127.0.0.1",
    port: 8080,
    database: "data/plants.db",
    limits: { poolSize: 10, connectTimeoutMs: 3_000, statementTimeoutMs: 5_000 },
    basePath: "",
    corsOrigins: "*",
    log: "auto",
    logLevel: "info",
    threads: expect.any(Number),
    tls: undefined,
    jwt: undefined,
    usage: { rate: undefined, plantsMax: undefined },
    events: 7 * 86_400_000,
  });
});

test("a flag comes before the environment, even if the environment is invalid", () => {
  const config = readConfig({ port: "9000" }, { PLANTSTORE_PORT: "x" });

  expect(config.port).toBe(9_000);
});

test("the environment comes before the default", () => {
  const config = readConfig({}, { PLANTSTORE_HOST: "::1" });

  expect(config.host).toBe("::1");
});

test("limits on usage are flags like all others", () => {
  const config = readConfig({ "garden-plants-max": "7", "rate-limit": "1/s" }, {});

  expect(config.usage).toEqual({ rate: { requests: 1, windowSeconds: 1 }, plantsMax: 7 });
});

interface ValidSetting {
  readonly name: SettingName;
  readonly text: string;
  readonly value: ReturnType<typeof readSetting>;
}

test.each<ValidSetting>([
  { name: "port", text: "0", value: 0 },
  { name: "port", text: "65535", value: 65_535 },
  {
    name: "database",
    text: "/home//me@example/plants.db",
    value: "/home//me@example/plants.db",
  },
  { name: "databaseStatementTimeoutMs", text: "100", value: 100 },
  { name: "databaseStatementTimeoutMs", text: "8000", value: 8_000 },
  { name: "basePath", text: "/garden/v1/", value: "/garden/v1" },
  {
    name: "corsOrigins",
    text: "https://a.example, http://[::1]:3",
    value: ["https://a.example", "http://[::1]:3"],
  },
  { name: "jwtIssuer", text: "http://[::1]", value: "http://[::1]" },
  { name: "jwtAudience", text: "https://a.example, b", value: ["https://a.example", "b"] },
  { name: "gardenPlantsMax", text: "1", value: 1 },
  { name: "gardenPlantsMax", text: "999999999", value: 999_999_999 },
  { name: "events", text: "90m", value: 5_400_000 },
  { name: "events", text: "off", value: "off" },
  { name: "url", text: "https://plants.example/v1/", value: "https://plants.example/v1" },
  { name: "rateLimit", text: "100/m", value: { requests: 100, windowSeconds: 60 } },
  { name: "rateLimit", text: "1000000/d", value: { requests: 1_000_000, windowSeconds: 86_400 } },
  { name: "rateLimit", text: "1/86400s", value: { requests: 1, windowSeconds: 86_400 } },
])("$name can be $text", ({ name, text, value }) => {
  expect(readSetting(name, { [settings[name].flag]: text }, {})).toEqual(value);
});

const invalidTexts: Partial<Record<SettingName, readonly string[]>> = {
  host: ["", "a b", "http://a"],
  port: ["", "65536", "-1", "80.0", "8e1", " 80", "http"],
  database: [
    "",
    "'postgres://plants:s3cret@host/name'",
    "postgres//plants:s3cret@host/name",
    "oracle://x",
  ],
  databaseStatementTimeoutMs: ["99", "8001", "3s"],
  basePath: ["v1", "//", "/v1//x", "/a b", "/v1?x", "/{id}"],
  corsOrigins: [
    "",
    "a.example",
    "https://a.example/",
    "https://a.example,",
    "*,https://a.example",
    "ftp://a.example",
    "https://*.example",
    "https://a.example:443",
    "https://user@a.example",
    "https://a.example:99999",
  ],
  log: ["JSON", ""],
  jwtIssuer: [
    "login.example",
    "http://login.example",
    "http://127.0.0.1.evil.example",
    "https://plants:s3cret@login.example",
    "https://login.example#a",
  ],
  jwtJwksUrl: ["file:///keys", "http://login.example/keys"],
  jwtScopeClaim: ["", "a b"],
  jwtReadScope: ["", "plants read", 'plants"read'],
  gardenPlantsMax: ["", "0", "1000000000", "-1"],
  url: [
    "",
    "plants.example",
    "ftp://plants.example",
    "http://",
    "https://plants:sec/s3cret@plants.example",
    "http://plants.example/?a",
    "http://plants.example/#a",
    "http://plants.example:x",
  ],
  rateLimit: ["", "100", "0/s", "1000001/s", "1/0s", "86401/86401s", "2/2d", "1.5/s", "1/ms", "on"],
  events: ["5s", "7", "1y"],
};

/** One line that begins like this and has no password in it. */
function lineWithoutSecret(start: string): RegExp {
  return new RegExp(`^${start} (?!.*s3cret)[^\\n]*$`);
}

describe.each(Object.entries(invalidTexts))("%s", (name, texts) => {
  const settingName = name as SettingName;
  const { flag, environment } = settings[settingName];

  test.each(texts)("refuses %p in one line that names it, without a secret", (text) => {
    const complaint = text === "" ? "is empty; it must be" : "must be";

    const readFlag = () => readSetting(settingName, { [flag]: text }, {});
    expect(readFlag).toThrow(expect.objectContaining({ code: "invalid-request" }));
    expect(readFlag).toThrow(lineWithoutSecret(`--${flag} ${complaint}`));

    const readVariable = () => readSetting(settingName, {}, { [environment]: text });
    expect(readVariable).toThrow(expect.objectContaining({ code: "invalid-request" }));
    expect(readVariable).toThrow(lineWithoutSecret(`${environment} ${complaint}`));
  });
});

describe("on PostgreSQL", () => {
  const onPostgres = { database: "postgres://h/d", "database-pool-size": "3" };

  test("the service has one thread by default", () => {
    expect(readConfig(onPostgres, {}).threads).toBe(1);
  });

  test("the service can have a thread for each connection", () => {
    expect(readConfig({ ...onPostgres, threads: "3" }, {}).threads).toBe(3);
  });

  test("the service can't have more threads than connections", () => {
    expect(() => readConfig({ ...onPostgres, threads: "4" }, {})).toThrow(
      "--threads must not be more than --database-pool-size",
    );
  });
});

test("on SQLite, the service can have more threads than connections", () => {
  expect(readConfig({ threads: "4", "database-pool-size": "3" }, {}).threads).toBe(4);
});
