/** Settings: flag, then environment, then default; an invalid one is refused in one line. */
import { expect, test } from "bun:test";
import { readConfig, readSetting, type SettingName, settings } from "./config.ts";

test("has a default for every setting", () => {
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

test("takes the flag before the environment, and the environment before the default", () => {
  // Not even an invalid one does harm when a flag takes its place.
  const environment = { PLANTSTORE_PORT: "x", PLANTSTORE_HOST: "::1" };
  const flags = { port: "9000", "garden-plants-max": "7", "rate-limit": "1/s" };
  const usage = { rate: { requests: 1, windowSeconds: 1 }, plantsMax: 7 };
  expect(readConfig(flags, environment)).toMatchObject({ port: 9000, host: "::1", usage });
});

test.each<[SettingName, string, ReturnType<typeof readSetting>]>([
  ["port", "0", 0],
  ["database", "/home//me@example/plants.db", "/home//me@example/plants.db"],
  ["databaseStatementTimeoutMs", "8000", 8_000],
  ["basePath", "/garden/v1/", "/garden/v1"],
  ["corsOrigins", "https://a.example, http://[::1]:3", ["https://a.example", "http://[::1]:3"]],
  ["jwtIssuer", "http://[::1]", "http://[::1]"],
  ["jwtAudience", "https://a.example, b", ["https://a.example", "b"]],
  ["gardenPlantsMax", "999999999", 999_999_999],
  ["events", "90m", 5_400_000],
  ["events", "off", "off"],
  ["url", "https://plants.example/v1/", "https://plants.example/v1"],
  ["rateLimit", "100/m", { requests: 100, windowSeconds: 60 }],
  ["rateLimit", "1000000/d", { requests: 1_000_000, windowSeconds: 86_400 }],
  ["rateLimit", "1/86400s", { requests: 1, windowSeconds: 86_400 }],
])("the valid value of %s, %p, is %p", (name, text, expected) => {
  expect(readSetting(name, { [settings[name].flag]: text }, {})).toEqual(expected);
});

/** Separated by spaces; `""` is an empty one, and `_` a space. */
const refused: Partial<Record<SettingName, string>> = {
  host: '"" a_b http://a',
  port: '"" 65536 -1 80.0 8e1 _80 http',
  database: `"" 'postgres://plants:s3cret@host/name' postgres//plants:s3cret@host/name oracle://x`,
  databaseStatementTimeoutMs: "99 8001 3s",
  basePath: "v1 // /v1//x /a_b /v1?x /{id}",
  corsOrigins:
    '"" a.example https://a.example/ https://a.example, *,https://a.example ftp://a.example ' +
    "https://*.example https://a.example:443 https://user@a.example https://a.example:99999",
  log: 'JSON ""',
  jwtIssuer:
    "login.example http://login.example http://127.0.0.1.evil.example " +
    "https://plants:s3cret@login.example https://login.example#a",
  jwtJwksUrl: "file:///keys http://login.example/keys",
  jwtScopeClaim: '"" a_b',
  jwtReadScope: '"" plants_read plants"read',
  gardenPlantsMax: '"" 0 1000000000 -1',
  url:
    '"" plants.example ftp://plants.example http:// https://plants:sec/s3cret@plants.example ' +
    "http://plants.example/?a http://plants.example/#a http://plants.example:x",
  rateLimit: '"" 100 0/s 1000001/s 1/0s 86401/86401s 2/2d 1.5/s 1/ms on',
  events: "5s 7 1y",
};
const invalid = (Object.entries(refused) as [SettingName, string][]).flatMap(([name, texts]) =>
  texts.split(" ").map((text) => [name, text === '""' ? "" : text.replaceAll("_", " ")] as const),
);

test.each(invalid)(
  "an invalid value of %s, such as %p, is refused in one line that names it, without a secret",
  (name, text) => {
    const { flag, environment } = settings[name];
    const must = text === "" ? "is empty; it must be" : "must be";
    for (const [source, flags, variables] of [
      [`--${flag}`, { [flag]: text }, {}],
      [environment, {}, { [environment]: text }],
    ] as const) {
      const read = () => readSetting(name, flags, variables);
      expect(read).toThrow(expect.objectContaining({ code: "invalid-request" }));
      expect(read).toThrow(new RegExp(`^${source} ${must} (?!.*s3cret)[^\\n]*$`));
    }
  },
);

test("takes one thread on PostgreSQL unless told otherwise, and at most one per connection", () => {
  const onPostgres = (flags: Record<string, string>) =>
    readConfig({ database: "postgres://h/d", "database-pool-size": "3", ...flags }, {}).threads;
  expect(onPostgres({})).toBe(1);
  expect(onPostgres({ threads: "3" })).toBe(3);
  expect(() => onPostgres({ threads: "4" })).toThrow(
    "--threads must not be more than --database-pool-size",
  );
  expect(readConfig({ threads: "4", "database-pool-size": "3" }, {}).threads).toBe(4);
});
