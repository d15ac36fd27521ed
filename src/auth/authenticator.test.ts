/** From a token to its caller, on a real storage and a clock of its own. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PlantStoreError } from "../domain/errors.ts";
import type { Storage } from "../domain/storage.ts";
import { openStorage } from "../storage/open.ts";
import { Authenticator, type RefreshableTokens } from "./authenticator.ts";
import { issueToken, type NewToken } from "./opaque-token.ts";

const trustMs = 4_000;
const refusedTokensMax = 4_096;

let folder: string;
let storage: Storage;
/** The same file as another process sees it. */
let beside: Storage;
let nowMs: number;
let lookUps: number;
let authenticator: Authenticator;

/** The real storage, with its lookups counted. */
function counted(): RefreshableTokens {
  return {
    countTokenChanges: storage.countTokenChanges,
    noteTokenUses: storage.noteTokenUses,
    findToken(hash) {
      lookUps++;
      return storage.findToken(hash);
    },
  };
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-authenticator-"));
  storage = await openStorage(join(folder, "plants.db"), { isServing: true });
  beside = await openStorage(join(folder, "plants.db"), { isServing: false });
  nowMs = 1_000_000;
  lookUps = 0;
  authenticator = new Authenticator(counted(), () => nowMs);
});

afterEach(async () => {
  await beside.close();
  await storage.close();
  rmSync(folder, { recursive: true });
});

function issue(token: Partial<NewToken> = {}) {
  return issueToken(beside, { user: "alice", ...token }, nowMs);
}

/** The user that a token stands for, or the code of the refusal. */
async function ask(token: string): Promise<string> {
  return authenticator.authenticate(token).then(
    (caller) => caller.user,
    (error) => error.code ?? String(error),
  );
}

async function flood(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, index) => ask(`wrong ${index}`)));
}

test("makes the caller that the token stands for", async () => {
  const { token, record } = await issue({ garden: "team", scope: "read" });
  expect(await authenticator.authenticate(token)).toEqual({
    credential: record.id,
    user: "alice",
    garden: "team",
    scope: "read",
  });
});

test("refuses a token from the moment of its expiry on, also one that it remembers", async () => {
  const { token } = await issue({ expiresAtMs: nowMs + 100 });
  await authenticator.refresh();
  nowMs += 99;
  expect(await ask(token)).toBe("alice");
  nowMs += 1;
  expect(await ask(token)).toBe("unauthenticated");
});

describe("what is remembered", () => {
  test("spares the storage a lookup, for good and for bad tokens", async () => {
    const { token } = await issue();
    await authenticator.refresh();
    for (let round = 0; round < 3; round++) {
      expect(await ask(token)).toBe("alice");
      expect(await ask("wrong")).toBe("unauthenticated");
    }
    expect(lookUps).toBe(2);
  });

  test("is not trusted before the count of changes was confirmed once", async () => {
    const { token } = await issue();
    await ask(token);
    await ask(token);
    expect(lookUps).toBe(2);
  });

  test("is trusted until the confirmation is as old as the trust time, and no longer", async () => {
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
    await ask(token);
    expect(lookUps).toBe(3);
  });
});

describe("a revocation by another process", () => {
  test.each([
    ["after a refresh", true],
    ["without a refresh once the trust time is over", false],
  ])("is seen %s", async (_, isRefreshed) => {
    const { token, record } = await issue();
    await authenticator.refresh();
    expect(await ask(token)).toBe("alice");
    await beside.revokeToken(record.id, nowMs);
    if (isRefreshed) await authenticator.refresh();
    else nowMs += trustMs + 1;
    expect(await ask(token)).toBe("unauthenticated");
  });

  test("does not get lost behind a lookup that was under way", async () => {
    const { token, record } = await issue();
    const answered = Promise.withResolvers<void>();
    const slow: RefreshableTokens = {
      ...counted(),
      async findToken(hash) {
        lookUps++;
        const found = await storage.findToken(hash);
        await answered.promise;
        return found;
      },
    };
    authenticator = new Authenticator(slow, () => nowMs);
    await authenticator.refresh();
    const asking = ask(token);
    await beside.revokeToken(record.id, nowMs);
    await authenticator.refresh();
    answered.resolve();
    expect(await asking).toBe("alice");
    expect(await ask(token)).toBe("unauthenticated");
  });
});

describe("a flood of bad tokens", () => {
  test("does not push good tokens out", async () => {
    const { token } = await issue();
    await authenticator.refresh();
    await ask(token);
    await flood(refusedTokensMax + 1);
    lookUps = 0;
    expect(await ask(token)).toBe("alice");
    expect(lookUps).toBe(0);
  });

  test("is remembered up to a bound", async () => {
    await authenticator.refresh();
    await flood(refusedTokensMax);
    lookUps = 0;
    await ask("wrong 0");
    expect(lookUps).toBe(0);
    await ask("one more");
    await ask("wrong 0");
    expect(lookUps).toBe(2);
  });
});

/** Failures that the real storage cannot be brought to at will. */
describe("a storage that fails", () => {
  const failure = () => Promise.reject(new PlantStoreError("unavailable", "The disk is gone."));

  test("is not taken for a bad token, and is not remembered as one", async () => {
    const { token } = await issue();
    const failing = counted();
    authenticator = new Authenticator(failing, () => nowMs);
    await authenticator.refresh();
    const { findToken } = failing;
    failing.findToken = failure;
    expect(await ask(token)).toBe("unavailable");
    failing.findToken = findToken;
    expect(await ask(token)).toBe("alice");
  });

  test("goes on serving tokens that it confirmed lately", async () => {
    const { token } = await issue();
    const failing = counted();
    authenticator = new Authenticator(failing, () => nowMs);
    await authenticator.refresh();
    await ask(token);
    Object.assign(failing, { findToken: failure, countTokenChanges: failure });
    nowMs += trustMs;
    expect(await authenticator.refresh().catch((error) => error.code)).toBe("unavailable");
    expect(await ask(token)).toBe("alice");
    nowMs += 1;
    expect(await ask(token)).toBe("unavailable");
  });
});
