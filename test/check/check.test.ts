/**
 * The check against the live service, which holds every rule, and against broken ones, which do
 * not.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Tokens } from "../../src/check/probe.ts";
import { allRules } from "../../src/check/rules/all-rules.ts";
import { type CheckResult, runCheck } from "../../src/check/run-check.ts";
import { type RunningService, runProgram, startService } from "../end-to-end/running-service.ts";
import { makeDatabase } from "../postgres-server.ts";
import { answerFlaws } from "./answer-flaws.ts";
import { openBrokenService } from "./broken-service.ts";
import { deleteFlaws } from "./delete-flaws.ts";
import type { Flaws } from "./flaw.ts";
import { keyFlaws } from "./key-flaws.ts";
import { listFlaws } from "./list-flaws.ts";
import { plantFlaws } from "./plant-flaws.ts";
import { requestFlaws } from "./request-flaws.ts";
import { serviceFlaws } from "./service-flaws.ts";
import { tokenFlaws } from "./token-flaws.ts";

setDefaultTimeout(30_000);

let service: RunningService;
let tokens: Tokens;
/** Begun first and looked at last, because it takes its time. */
let slowCheck: Promise<CheckResult>;

async function makeToken(of: RunningService, user: string, ...flags: string[]): Promise<string> {
  const args = ["token", "create", user, "--database", of.database, ...flags];
  return (await runProgram(args)).out.trim();
}

async function makeTokens(of: RunningService): Promise<Tokens> {
  const [first, second, read] = await Promise.all([
    makeToken(of, "ann"),
    makeToken(of, "bob"),
    makeToken(of, "ann", "--scope", "read"),
  ]);
  return { first: first ?? "", second, read };
}

/** Plants that were there before, and must be there afterwards. */
async function seed(): Promise<void> {
  for (const id of [-7, 0, 1, 2, 1_000]) {
    for (const token of [tokens.first, tokens.second ?? ""]) {
      const body = JSON.stringify({ name: `Old ${id}`, id });
      expect((await service.call("POST /plants", { body, token })).status).toBe(201);
    }
  }
}

async function listAll(): Promise<string> {
  const pages = [tokens.first, tokens.second ?? ""].map(async (token) =>
    (await service.call("GET /plants?fields=id,name,tag", { token })).text(),
  );
  return (await Promise.all(pages)).join("\n");
}

beforeAll(async () => {
  service = await startService({ args: ["--threads", "2"] });
  tokens = await makeTokens(service);
  await seed();
  const rules = allRules.filter(({ name }) => name === slowRule);
  slowCheck = check(service.url, { rules, isSlow: true });
});

afterAll(() => service[Symbol.asyncDispose]());

function check(url: string, { rules = allRules, given = tokens, isSlow = false } = {}) {
  const { signal } = new AbortController();
  return runCheck({ url, tokens: given, rules, timeoutMs: 2_000, isSlow, signal });
}

/** Rules that did not pass, with the reason. */
function troubles({ results }: CheckResult): string[] {
  return results
    .filter(({ outcome }) => outcome !== "passed")
    .map(({ outcome, rule, reason }) => `${outcome}: ${rule} (${reason})`);
}

const slowRule = "a body that does not arrive within 15 seconds is given up";
const slowIsSkipped = `skipped: ${slowRule} (takes 15 seconds; ask for it with --slow)`;

const limitIsSkipped =
  "skipped: RateLimit and a limit of requests in RateLimit-Policy come together (no rate limit is on)";

/** Deletes what a broken service could not. */
async function weed(): Promise<void> {
  for (const token of [tokens.first, tokens.second ?? ""]) {
    const text = await (await service.call("GET /plants?fields=id,name", { token })).text();
    for (const [, id, name] of text.matchAll(/"id":(-?\d+),"name":("(?:[^"\\]|\\.)*")/g)) {
      if (!name?.startsWith('"Old ')) await service.call(`DELETE /plants/${id}`, { token });
    }
  }
}

describe("the live service", () => {
  test("passes, on two threads, and keeps the plants that it had", async () => {
    const before = await listAll();
    const result = await check(service.url);
    expect(troubles(result)).toEqual([slowIsSkipped, limitIsSkipped]);
    expect(result.leftBehind).toEqual([]);
    expect(await listAll()).toBe(before);
  });

  test("passes on one thread, under a base path", async () => {
    await using based = await startService({ args: ["--threads", "1", "--base-path", "/a/v1"] });
    const result = await check(based.url, { given: await makeTokens(based) });
    expect(troubles(result)).toEqual([slowIsSkipped, limitIsSkipped]);
    expect(result.leftBehind).toEqual([]);
  });

  test("passes on PostgreSQL", async () => {
    const database = await makeDatabase();
    {
      await using other = await startService({ database: database.url });
      const result = await check(other.url, { given: await makeTokens(other) });
      expect(troubles(result)).toEqual([slowIsSkipped, limitIsSkipped]);
    }
    await database.drop();
  });

  test("passes where requests and plants are limited, and tells how long it waited", async () => {
    const args = ["--rate-limit", "20/2s", "--garden-plants-max", "10"];
    await using limited = await startService({ args });
    const rules = allRules.filter(({ topic }) => topic === "limits" || topic === "delete");
    const result = await check(limited.url, { rules, given: await makeTokens(limited) });
    expect(troubles(result)).toEqual([slowIsSkipped]);
    expect(result.waitedSeconds).toBeGreaterThan(0);
  });

  test("passes with one token, and what needs more is skipped", async () => {
    const result = await check(service.url, { given: { first: tokens.first } });
    const skipped = troubles(result);
    expect(skipped.filter((trouble) => !trouble.startsWith("skipped"))).toEqual([]);
    expect(skipped.filter((trouble) => trouble.includes("--token-2")).length).toBe(5);
    expect(skipped.filter((trouble) => trouble.includes("--token-read")).length).toBe(5);
  });
});

const allFlaws: Flaws = {
  ...requestFlaws,
  ...plantFlaws,
  ...keyFlaws,
  ...listFlaws,
  ...deleteFlaws,
  ...tokenFlaws,
  ...answerFlaws,
  ...serviceFlaws,
};

const flawRows = Object.entries(allFlaws).flatMap(([rule, flaws]) =>
  Object.entries(flaws).map(([flaw, serve]) => ({ rule, flaw, serve })),
);

describe("rules", () => {
  test("have a name each", () => {
    const names = allRules.map(({ name }) => name);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  test("are each broken by a service below, but for one that takes long", () => {
    const names = allRules.map(({ name }) => name);
    expect(names.filter((name) => !(name in allFlaws))).toEqual([slowRule]);
    expect(Object.keys(allFlaws).filter((name) => !names.includes(name))).toEqual([]);
  });
});

describe("a broken service", () => {
  test("is not what stands before the real one: without a flaw it passes", async () => {
    const whole = await openBrokenService(service.url, tokens, (request, forward) =>
      forward(request),
    );
    const result = await check(whole.url);
    whole.close();
    expect(troubles(result)).toEqual([slowIsSkipped, limitIsSkipped]);
  });

  test.each(flawRows)("fails the rule “$rule” if it $flaw", async ({ rule: name, serve }) => {
    const before = await listAll();
    const broken = await openBrokenService(service.url, tokens, serve);
    const rules = allRules.filter((rule) => rule.name === name);
    const { results, leftBehind } = await check(broken.url, { rules });
    broken.close();
    expect(results).toMatchObject([{ outcome: "failed" }]);
    expect(results[0]?.reason).not.toMatch(/the connection was closed|makes no sense/);
    // What it does not delete is said; else the garden is as it was.
    if (leftBehind.length > 0) await weed();
    expect(await listAll()).toBe(before);
  });
});

test("the live service gives up on a body that does not come", async () => {
  expect(troubles(await slowCheck)).toEqual([]);
});
