/** Making a token: what is kept of it, and that the token itself is not. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Storage } from "../domain/storage.ts";
import { openStorage } from "../storage/open.ts";
import { issueToken } from "./issue.ts";
import { hashToken, isTokenForm } from "./opaque-token.ts";

const folder = mkdtempSync(join(tmpdir(), "plantstore-issue-"));
let storage: Storage;

beforeAll(async () => {
  storage = await openStorage(join(folder, "plants.db"), { isServing: false });
});

afterAll(async () => {
  await storage.close();
  rmSync(folder, { recursive: true });
});

test("opens the user's own garden for writing, without end, unless told otherwise", async () => {
  const { token, record } = await issueToken(storage, { user: "alice" }, 1000);
  expect(isTokenForm(token)).toBe(true);
  expect(record).toEqual({
    id: expect.stringMatching(/^[0-9A-Za-z]{10}$/),
    hash: hashToken(token),
    user: "alice",
    garden: "alice",
    scope: "write",
    note: "",
    createdAtMs: 1000,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
  });
  expect(await storage.findToken(hashToken(token))).toEqual(record);
});

test("keeps garden, scope, expiry and note as wished", async () => {
  const wish = {
    user: "bob",
    garden: "team",
    scope: "read",
    expiresAtMs: 5000,
    note: "x",
  } as const;
  const { token } = await issueToken(storage, wish, 2000);
  expect(await storage.findToken(hashToken(token))).toMatchObject({ ...wish, createdAtMs: 2000 });
});

test("gives each token a secret and an id of its own", async () => {
  const first = await issueToken(storage, { user: "carol" }, 0);
  const second = await issueToken(storage, { user: "carol" }, 0);
  expect(first.token).not.toBe(second.token);
  expect(first.record.id).not.toBe(second.record.id);
});

test("leaves the token itself nowhere in the storage", async () => {
  const { token } = await issueToken(storage, { user: "dave" }, 0);
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, name));
    expect(bytes.includes(token)).toBe(false);
    expect(bytes.includes(token.slice("plant_".length, -6))).toBe(false);
  }
});

test("hands no token out when it could not be stored", async () => {
  const full = { addToken: () => Promise.reject(new Error("The storage is full.")) };
  const outcome = await issueToken(full, { user: "erin" }, 0).catch((error) => error);
  expect(outcome).toBeInstanceOf(Error);
});
