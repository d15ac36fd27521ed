/** From a token to its caller, on a real storage and an injected clock. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { Authenticator, type RefreshableTokens } from "./authenticator.ts";
import { issueToken, type NewToken } from "./opaque-token.ts";

const trustMs = 4_000;

let folder: ReturnType<typeof makeTemporaryFolder>;
let storage: Storage;
let nowMs: number;
let lookUps: number;
/** The real storage, with its lookups counted. Tests replace its methods. */
let tokens: RefreshableTokens;
let authenticator: Authenticator;

beforeEach(async () => {
  folder = makeTemporaryFolder();
  storage = await openStorage(join(folder.path, "plants.db"), { isServing: true });
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
  await storage.close();
  folder[Symbol.dispose]();
});

function issue(token: Partial<NewToken> = {}) {
  return issueToken(storage, { user: "alice", ...token }, nowMs);
}

/** The user of a token, or the code of the refusal. */
async function ask(token: string): Promise<string> {
  return authenticator.authenticate(token).then(
    (caller) => caller.user,
    (error) => error.code ?? String(error),
  );
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
});

test("a token that is revoked during its lookup isn't cached", async () => {
  const { token, record } = await issue();
  await authenticator.refresh();
  const held = Promise.withResolvers<void>();
  tokens.findToken = async (hash) => {
    const found = await storage.findToken(hash);
    await held.promise;
    return found;
  };
  const asking = ask(token);
  await storage.revokeToken(record.id, nowMs);
  await authenticator.refresh();
  held.resolve();
  expect(await asking).toBe("alice");
  expect(await ask(token)).toBe("unauthenticated");
});

test("a revocation isn't lost in a failover to a standby with the same count of changes", async () => {
  tokens.countTokenChanges = async () => 1;
  const { token, record } = await issue();
  await authenticator.refresh();
  expect(await ask(token)).toBe("alice");
  await storage.revokeToken(record.id, nowMs);
  nowMs += trustMs + 1;
  await authenticator.refresh();
  expect(await ask(token)).toBe("unauthenticated");
});

test("while the storage fails, a token is neither refused nor cached as bad", async () => {
  const { token } = await issue();
  await authenticator.refresh();
  const { findToken } = tokens;
  tokens.findToken = () => Promise.reject(new PlantStoreError("unavailable", "The disk is gone."));
  expect(await ask(token)).toBe("unavailable");
  tokens.findToken = findToken;
  expect(await ask(token)).toBe("alice");
});

test("uses that can't be noted are noted the next time", async () => {
  const { token, record } = await issue();
  await authenticator.refresh();
  await ask(token);
  tokens.noteTokenUses = () => Promise.reject(new Error("The disk is gone."));
  await expect(authenticator.noteUses()).rejects.toThrow("gone");
  tokens.noteTokenUses = storage.noteTokenUses;
  await authenticator.noteUses();
  expect(await storage.findToken(record.hash)).toMatchObject({ lastUsedAtMs: nowMs });
});
