/** What becomes of tokens that are refused, and of those that were known for too long. */
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { TokenRecord } from "../domain/token.ts";
import { Authenticator } from "./authenticator.ts";
import { issueToken } from "./issue.ts";

const trustMs = 4_000;
const refusedAfterMs = 5;
const knownTokensMax = 131_072;

let nowMs: number;
let lookUps: number;
let records: Map<string, TokenRecord>;
/** What happens between a question to the storage and its answer. */
let meanwhile: (asked: "count" | "token") => unknown;
let authenticator: Authenticator;

beforeEach(async () => {
  nowMs = 1_000_000;
  lookUps = 0;
  records = new Map();
  meanwhile = () => {};
  const storage = {
    async countTokenChanges() {
      const changes = records.size;
      await meanwhile("count");
      return changes;
    },
    async findToken(hash: string) {
      lookUps++;
      const found = records.get(hash);
      await meanwhile("token");
      return found;
    },
    async noteTokenUses() {},
  };
  authenticator = new Authenticator(storage, () => nowMs);
  await authenticator.refresh();
});

afterEach(() => {
  jest.useRealTimers();
});

async function add(record: TokenRecord): Promise<void> {
  records.set(record.hash, record);
}

async function issue(expiresAtMs?: number): Promise<string> {
  const { token } = await issueToken({ addToken: add }, { user: "alice", expiresAtMs }, nowMs);
  return token;
}

async function ask(token: string): Promise<string> {
  return authenticator.authenticate(token).then(
    ({ user }) => user,
    (error) => error.code,
  );
}

test("a refusal comes at the same time, however long the storage took to find it", async () => {
  jest.useFakeTimers();
  for (const searchMs of [1, refusedAfterMs - 1]) {
    meanwhile = () => new Promise<void>((resolve) => setTimeout(resolve, searchMs));
    let isRefused = false;
    ask(`unknown ${searchMs}`).then(() => {
      isRefused = true;
    });
    const seen: boolean[] = [];
    for (let passedMs = 1; passedMs <= refusedAfterMs; passedMs++) {
      jest.advanceTimersByTime(1);
      for (let task = 0; task < 20; task++) await Promise.resolve();
      seen.push(isRefused);
    }
    expect(seen).toEqual([...Array(refusedAfterMs - 1).fill(false), true]);
  }
});

test("a token that was stored while it was being refused is taken after the refresh", async () => {
  const { token, record } = await issueToken({ async addToken() {} }, { user: "alice" }, nowMs);
  const answered = Promise.withResolvers<void>();
  meanwhile = (asked) => (asked === "token" ? answered.promise : undefined);
  const asking = ask(token);
  await add(record);
  await authenticator.refresh();
  answered.resolve();
  expect(await asking).toBe("unauthenticated");
  expect(await ask(token)).toBe("alice");
});

test("a token that expired while it was known is refused as one that was not, and then known", async () => {
  const token = await issue(nowMs + 100);
  await authenticator.refresh();
  expect(await ask(token)).toBe("alice");
  nowMs += 100;
  const askedAtMs = performance.now();
  expect(await ask(token)).toBe("unauthenticated");
  expect(performance.now() - askedAtMs).toBeGreaterThan(refusedAfterMs - 1);
  for (let time = 0; time < 3; time++) expect(await ask(token)).toBe("unauthenticated");
  expect(lookUps).toBe(2);
});

test("a refused text is remembered up to 256 characters, so that none takes much room", async () => {
  for (const [characters, lookUpsEach] of [
    [256, 1],
    [257, 2],
  ] as const) {
    lookUps = 0;
    await ask("x".repeat(characters));
    await ask("x".repeat(characters));
    expect(lookUps).toBe(lookUpsEach);
  }
});

test("what is known counts from when the count of changes was asked for, not told", async () => {
  const token = await issue();
  meanwhile = (asked) => {
    if (asked === "count") nowMs += trustMs;
  };
  await authenticator.refresh();
  await ask(token);
  expect([await ask(token), lookUps]).toEqual(["alice", 1]);
  nowMs += 1;
  expect([await ask(token), lookUps]).toEqual(["alice", 2]);
});

test("what is known does not count by a clock that was set back further than it is trusted", async () => {
  const token = await issue();
  await authenticator.refresh();
  await ask(token);
  nowMs -= trustMs;
  expect([await ask(token), lookUps]).toEqual(["alice", 1]);
  nowMs -= 1;
  expect([await ask(token), lookUps]).toEqual(["alice", 2]);
});

test("so many tokens are known at once, and the one of longest ago is looked up again", async () => {
  const { record } = await issueToken({ addToken: add }, { user: "alice" }, nowMs);
  records.get = () => record;
  for (let index = 0; index < knownTokensMax; index++) await ask(`token ${index}`);
  await ask("token 0");
  expect(lookUps).toBe(knownTokensMax);
  await ask("one more");
  await ask("token 1");
  expect(lookUps).toBe(knownTokensMax + 1);
  await ask("token 0");
  expect(lookUps).toBe(knownTokensMax + 2);
}, 30_000);
