/** From a token to its caller, on a real storage and an injected clock. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PlantStoreError } from "../domain/errors.ts";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { Authenticator, type RefreshableTokens } from "./authenticator.ts";
import { issueToken, type NewToken } from "./opaque-token.ts";

const trustMs = 4_000;
const knownTokensMax = 131_072;

let folder: string;
let storage: Storage;
/** The same file, as another process sees it. */
let otherProcess: Storage;
let nowMs: number;
let lookUps: number;
/** The real storage, with its lookups counted. Tests replace its methods. */
let tokens: RefreshableTokens;
let authenticator: Authenticator;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-authenticator-"));
  storage = await openStorage(join(folder, "plants.db"), { isServing: true });
  otherProcess = await openStorage(join(folder, "plants.db"), { isServing: false });
  nowMs = 1_000_000;
  lookUps = 0;
  tokens = {
    countTokenChanges: storage.countTokenChanges,
    noteTokenUses: storage.noteTokenUses,
    findToken(hash) {
      lookUps++;
      return storage.findToken(hash);
    },
  };
  authenticator = new Authenticator(tokens, () => nowMs);
});

afterEach(async () => {
  await otherProcess.close();
  await storage.close();
  rmSync(folder, { recursive: true });
});

function issue(token: Partial<NewToken> = {}) {
  return issueToken(otherProcess, { user: "alice", ...token }, nowMs);
}

/** The user of a token, or the code of the refusal. */
async function ask(token: string): Promise<string> {
  return authenticator.authenticate(token).then(
    (caller) => caller.user,
    (error) => error.code ?? String(error),
  );
}

/** Holds back responses to lookups until the test releases them. */
function holdLookUps(): () => void {
  const held = Promise.withResolvers<void>();
  const { findToken } = tokens;
  tokens.findToken = async (hash) => {
    const found = await findToken(hash);
    await held.promise;
    return found;
  };
  return held.resolve;
}

test("refuses a token from the moment it expires, even a cached one", async () => {
  const { token } = await issue({ expiresAtMs: nowMs + 100 });
  await authenticator.refresh();
  nowMs += 99;
  expect(await ask(token)).toBe("alice");
  nowMs += 1;
  expect(await ask(token)).toBe("unauthenticated");
});

describe("the cache", () => {
  test("is not used before the first refresh", async () => {
    const { token } = await issue();
    await ask(token);
    await ask(token);
    expect(lookUps).toBe(2);
  });

  test("is used until the last refresh is too old", async () => {
    const { token } = await issue();
    await authenticator.refresh();
    await ask(token);
    nowMs += trustMs;
    await authenticator.refresh();
    nowMs += trustMs;
    await ask(token);
    expect(lookUps).toBe(1);
    nowMs += 1;
    await ask(token);
    expect(lookUps).toBe(2);
  });

  test("counts its age from the start of a refresh, not from its end", async () => {
    const { token } = await issue();
    tokens.countTokenChanges = async () => {
      nowMs += trustMs;
      return 1;
    };
    await authenticator.refresh();
    await ask(token);
    nowMs += 1;
    await ask(token);
    expect(lookUps).toBe(2);
  });

  test("is not used when the clock was set back further than it is trusted", async () => {
    const { token } = await issue();
    await authenticator.refresh();
    await ask(token);
    nowMs -= trustMs + 1;
    await ask(token);
    expect(lookUps).toBe(2);
  });

  test("holds a bounded number of good tokens", async () => {
    const { record } = await issue();
    tokens.findToken = async () => {
      lookUps++;
      return record;
    };
    await authenticator.refresh();
    for (let index = 0; index < knownTokensMax; index++) await ask(`token ${index}`);
    await ask("token 0");
    expect(lookUps).toBe(knownTokensMax);
    await ask("one more");
    await ask("token 0");
    expect(lookUps).toBe(knownTokensMax + 2);
  }, 120_000);
});

describe("a change by another process", () => {
  test.each([
    ["after a refresh", true],
    ["without a refresh, once the cache is too old", false],
  ])("revokes a token %s", async (_, isRefreshed) => {
    const { token, record } = await issue();
    await authenticator.refresh();
    expect(await ask(token)).toBe("alice");
    await otherProcess.revokeToken(record.id, nowMs);
    if (isRefreshed) await authenticator.refresh();
    else nowMs += trustMs + 1;
    expect(await ask(token)).toBe("unauthenticated");
  });

  test("isn't lost when a token is revoked during its lookup", async () => {
    const { token, record } = await issue();
    await authenticator.refresh();
    const release = holdLookUps();
    const asking = ask(token);
    await otherProcess.revokeToken(record.id, nowMs);
    await authenticator.refresh();
    release();
    expect(await asking).toBe("alice");
    expect(await ask(token)).toBe("unauthenticated");
  });

  test("isn't lost when a token is added during its lookup", async () => {
    const { token, record } = await issueToken({ async addToken() {} }, { user: "alice" }, nowMs);
    await authenticator.refresh();
    const release = holdLookUps();
    const asking = ask(token);
    await Bun.sleep(1);
    await otherProcess.addToken(record);
    await authenticator.refresh();
    release();
    expect(await asking).toBe("unauthenticated");
    expect(await ask(token)).toBe("alice");
  });

  test("isn't lost in a failover to a standby with the same count of changes", async () => {
    tokens.countTokenChanges = async () => 1;
    const { token, record } = await issue();
    await authenticator.refresh();
    const release = holdLookUps();
    const asking = ask(token);
    await Bun.sleep(1);
    await otherProcess.revokeToken(record.id, nowMs);
    nowMs += trustMs + 1;
    await authenticator.refresh();
    release();
    expect(await asking).toBe("alice");
    expect(await ask(token)).toBe("unauthenticated");
  });
});

/** The real storage can't be made to fail at will. */
describe("while the storage fails", () => {
  const failure = () => Promise.reject(new PlantStoreError("unavailable", "The disk is gone."));

  test("a token is neither refused nor cached as bad", async () => {
    const { token } = await issue();
    await authenticator.refresh();
    const { findToken } = tokens;
    tokens.findToken = failure;
    expect(await ask(token)).toBe("unavailable");
    tokens.findToken = findToken;
    expect(await ask(token)).toBe("alice");
  });
});

describe("the last use of a token", () => {
  async function lastUseOf(id: string): Promise<number | undefined> {
    return (await storage.listTokens()).find((token) => token.id === id)?.lastUsedAtMs;
  }

  test("is noted later if the storage fails, even after the cache was cleared", async () => {
    const { token, record } = await issue();
    await authenticator.refresh();
    await ask(token);
    const { noteTokenUses } = tokens;
    tokens.noteTokenUses = async () => {
      nowMs += 1;
      await ask(token);
      await issue({ user: "bob" });
      await authenticator.refresh();
      throw new PlantStoreError("storage-full", "The storage is full.");
    };
    await authenticator.noteUses().catch(() => {});
    tokens.noteTokenUses = noteTokenUses;
    await authenticator.noteUses();
    expect(await lastUseOf(record.id)).toBe(nowMs);
  });
});
