/**
 * The contract table, row by row, against the real program, on both engines: on a file with two
 * threads and a base path, and on PostgreSQL with neither.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type CheckResult, contract, runCheck, type Tokens } from "../../src/check/run-check.ts";
import { makeToken, type RunningService, startService } from "../end-to-end/running-service.ts";
import { makeDatabase } from "../postgres-server.ts";

setDefaultTimeout(120_000);

async function makeTokens(service: RunningService): Promise<Record<keyof Tokens, string>> {
  const [write, second, read] = await Promise.all([
    makeToken(service, "ann"),
    makeToken(service, "bob"),
    makeToken(service, "ann", "--scope", "read"),
  ]);
  return { write, second, read };
}

function check(url: string, tokens: Tokens, { rows = contract, isSlow = false } = {}) {
  const { signal } = new AbortController();
  return runCheck({ url, tokens, rows, isSlow, signal });
}

const slowRow = "a body that does not arrive within 15 seconds is given up";
const rateRow = "RateLimit and a limit of requests in RateLimit-Policy come together";
const skippedRows = [slowRow, rateRow];

describe.each([
  ["SQLite", ["--threads", "2", "--base-path", "/a/v1"]],
  ["PostgreSQL", ["--threads", "1"]],
] as const)("on %s", (engine, args) => {
  let result: CheckResult;
  const gardens: string[] = [];

  beforeAll(async () => {
    await using database = engine === "PostgreSQL" ? await makeDatabase() : undefined;
    await using service = await startService({
      args,
      ...(database && { database: database.url }),
    });
    const tokens = await makeTokens(service);
    const listAll = async (token: string) =>
      (await service.call("GET /plants?include=id", { token })).text();
    for (const token of [tokens.write, tokens.second]) {
      for (const id of [-7, 1, 2, 1_000]) {
        const body = JSON.stringify({ name: `Old ${id}`, id });
        expect((await service.call("POST /plants", { body, token })).status).toBe(201);
      }
      gardens.push(await listAll(token));
    }
    result = await check(service.url, tokens);
    gardens.push(await listAll(tokens.write), await listAll(tokens.second));
  });

  test.each(contract.map(({ topic, rule }) => [topic, rule]))("%s: %s", (topic, rule) => {
    const found = result.results.find((each) => each.topic === topic && each.rule === rule);
    const outcome = skippedRows.includes(rule) ? "skipped" : "passed";
    expect(found).toMatchObject({ outcome });
  });

  test("the gardens hold what they held before", () => {
    const [first, second, ...after] = gardens;
    expect(after).toEqual([first ?? "", second ?? ""]);
    expect(result.leftBehind).toEqual([]);
  });
});

describe("the check", () => {
  let service: RunningService;
  let tokens: Tokens;
  /** Begun first and looked at last, because it takes its time. */
  let slowCheck: Promise<CheckResult>;

  beforeAll(async () => {
    service = await startService();
    tokens = await makeTokens(service);
    const rows = contract.filter(({ rule }) => rule === slowRow);
    slowCheck = check(service.url, tokens, { rows, isSlow: true });
  });

  afterAll(() => service[Symbol.asyncDispose]());

  test("waits where requests are limited, and says for how long", async () => {
    const args = ["--rate-limit", "6/2s", "--garden-plants-max", "10"];
    await using limited = await startService({ args });
    const rows = contract.filter(({ topic }) => topic === "limits");
    const { results, waitedSeconds } = await check(limited.url, await makeTokens(limited), {
      rows,
    });
    const notPassed = results.filter(({ outcome }) => outcome !== "passed");
    expect(notPassed.map(({ rule }) => rule)).toEqual([slowRow]);
    expect(waitedSeconds).toBeGreaterThan(0);
  });

  test("skips what needs another token, and says which", async () => {
    const needing = (token: string) =>
      contract.filter(({ steps }) => steps.some(([sent]) => Object(sent).token === token));
    for (const [token, variable] of [
      ["second", "PLANTSTORE_TOKEN_2"],
      ["read", "PLANTSTORE_TOKEN_READ"],
    ] as const) {
      const rows = needing(token);
      const { results } = await check(service.url, { write: tokens.write }, { rows });
      expect(results).toHaveLength(rows.length);
      for (const { outcome, reason } of results) {
        expect([outcome, reason]).toEqual(["skipped", expect.stringContaining(variable)]);
      }
    }
  });

  test("has a sentence of its own for each row", () => {
    const rules = contract.map(({ rule }) => rule);
    expect(rules.filter((rule, index) => rules.indexOf(rule) !== index)).toEqual([]);
  });

  test("sees that the service gives up on a body that does not arrive", async () => {
    expect((await slowCheck).results).toMatchObject([{ outcome: "passed" }]);
  });
});
