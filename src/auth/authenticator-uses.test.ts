/** When tokens were last used: noted rarely, once for each use, and never lost. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PlantStoreError } from "../domain/errors.ts";
import type { Storage, TokenUse } from "../domain/storage.ts";
import { openStorage } from "../storage/open.ts";
import { Authenticator, type RefreshableTokens } from "./authenticator.ts";
import { issueToken } from "./opaque-token.ts";

let folder: string;
let storage: Storage;
let nowMs: number;
let noted: TokenUse[][];
let isFailing: boolean;
let whileNoting: () => Promise<unknown>;
let authenticator: Authenticator;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-uses-"));
  storage = await openStorage(join(folder, "plants.db"), { isServing: true });
  nowMs = 1_000_000;
  noted = [];
  isFailing = false;
  whileNoting = async () => {};
  const tokens: RefreshableTokens = {
    findToken: storage.findToken,
    countTokenChanges: storage.countTokenChanges,
    async noteTokenUses(uses) {
      await whileNoting();
      if (isFailing) throw new PlantStoreError("storage-full", "The storage is full.");
      noted.push([...uses]);
      await storage.noteTokenUses(uses);
    },
  };
  authenticator = new Authenticator(tokens, () => nowMs);
});

afterEach(async () => {
  await storage.close();
  rmSync(folder, { recursive: true });
});

async function issue(user = "alice") {
  const issued = await issueToken(storage, { user }, nowMs);
  await authenticator.refresh();
  return issued;
}

async function lastUseOf(id: string): Promise<number | undefined> {
  return (await storage.listTokens()).find((token) => token.id === id)?.lastUsedAtMs;
}

test("notes many uses of a token as one, the latest", async () => {
  const { token, record } = await issue();
  await authenticator.authenticate(token);
  nowMs += 7;
  await authenticator.authenticate(token);
  await authenticator.noteUses();
  expect(noted).toEqual([[{ id: record.id, usedAtMs: nowMs }]]);
  expect(await lastUseOf(record.id)).toBe(nowMs);
});

test("notes a use once, and doesn't call the storage if there is none", async () => {
  const { token } = await issue();
  await authenticator.noteUses();
  expect(noted).toHaveLength(0);
  await authenticator.authenticate(token);
  await authenticator.noteUses();
  await authenticator.noteUses();
  expect(noted).toHaveLength(1);
  nowMs += 1;
  await authenticator.authenticate(token);
  await authenticator.noteUses();
  expect(noted).toHaveLength(2);
});

test("notes the latest use if the storage failed to note an earlier one", async () => {
  const { token, record } = await issue();
  await authenticator.authenticate(token);
  isFailing = true;
  whileNoting = async () => {
    nowMs += 1;
    await authenticator.authenticate(token);
    await issue("bob");
  };
  await authenticator.noteUses().catch(() => {});
  isFailing = false;
  whileNoting = async () => {};
  await authenticator.noteUses();
  expect(await lastUseOf(record.id)).toBe(nowMs);
});

test("notes the last use of a token that has expired since", async () => {
  const usedAtMs = nowMs;
  const expiring = { user: "alice", expiresAtMs: nowMs + 100 };
  const { token, record } = await issueToken(storage, expiring, nowMs);
  await authenticator.refresh();
  await authenticator.authenticate(token);
  nowMs += 100;
  await authenticator.authenticate(token).catch(() => {});
  await authenticator.noteUses();
  expect(await lastUseOf(record.id)).toBe(usedAtMs);
});

test("notes many uses in batches, each once", async () => {
  const { record } = await issue();
  authenticator = new Authenticator(
    {
      findToken: async (hash) => ({ ...record, id: hash }),
      countTokenChanges: async () => 1,
      noteTokenUses: async (uses) => {
        noted.push([...uses]);
      },
    },
    () => nowMs,
  );
  await authenticator.refresh();
  const tokens = Array.from({ length: 2_001 }, (_, index) => `token ${index}`);
  await Promise.all(tokens.map((token) => authenticator.authenticate(token)));
  await authenticator.noteUses();
  expect(noted.map(({ length }) => length)).toEqual([1_000, 1_000, 1]);
  expect(new Set(noted.flat().map(({ id }) => id)).size).toBe(2_001);
});
