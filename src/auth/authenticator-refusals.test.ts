/** What the authenticator caches of refused and of good tokens, and for how long. */
import { beforeEach, expect, test } from "bun:test";
import type { TokenRecord } from "../domain/token.ts";
import { Authenticator } from "./authenticator.ts";
import { issueToken } from "./opaque-token.ts";

const trustMs = 4_000;
const knownTokensMax = 131_072;

let nowMs: number;
let lookUps: number;
let records: Map<string, TokenRecord>;
/** What happens between a query and its response. */
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

test("the cache counts from when the number of changes was asked for, not from the response", async () => {
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

test("a revocation doesn't hide behind a late response from before a failover", async () => {
  const { token, record } = await issueToken({ addToken: add }, { user: "alice" }, nowMs);
  await authenticator.refresh();
  const late = Promise.withResolvers<void>();
  meanwhile = (asked) => (asked === "token" ? late.promise : undefined);
  const asking = ask(token);
  // The standby reached the same count by other changes, this revocation among them.
  records.set(record.hash, { ...record, revokedAtMs: nowMs });
  nowMs += trustMs + 1;
  await authenticator.refresh();
  late.resolve();
  expect(await asking).toBe("alice");
  expect(await ask(token)).toBe("unauthenticated");
});
