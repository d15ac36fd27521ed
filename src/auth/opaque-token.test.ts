/** Opaque tokens: form, checksum and hash, and that storage never sees the token itself. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { hashToken, issueToken, isTokenForm, makeIdentifier, makeToken } from "./opaque-token.ts";

describe("the check of the form", () => {
  const token = makeToken();
  const swap = (at: number) => {
    const other = token[at] === "x" ? "y" : "x";
    return token.slice(0, at) + other + token.slice(at + 1);
  };

  test("sees any one character that was mistyped", () => {
    for (let at = 0; at < token.length; at++) expect(isTokenForm(swap(at))).toBe(false);
  });

  test("takes the checksum to be CRC-32 in base 62, so that old tokens stay well-formed", () => {
    const secret = `plant_${"0".repeat(43)}`;
    expect(isTokenForm(`${secret}1oG6F3`)).toBe(true);
  });
});

test("identifiers use the whole alphabet", () => {
  expect(new Set(makeIdentifier(10_000)).size).toBe(62);
});

test("the hash is SHA-256 in hexadecimal", () => {
  expect(hashToken("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});

describe("issuing a token", () => {
  const folder = mkdtempSync(join(tmpdir(), "plantstore-issue-"));
  let storage: Storage;

  beforeAll(async () => {
    storage = await openStorage(join(folder, "plants.db"), { isServing: false });
  });

  afterAll(async () => {
    await storage.close();
    rmSync(folder, { recursive: true });
  });

  test("opens the user's own garden for writing, without expiry, unless requested otherwise", async () => {
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

  test("leaves the token itself nowhere in the storage", async () => {
    const { token } = await issueToken(storage, { user: "dave" }, 0);
    for (const name of readdirSync(folder)) {
      const bytes = readFileSync(join(folder, name));
      expect(bytes.includes(token)).toBe(false);
      expect(bytes.includes(token.slice("plant_".length, -6))).toBe(false);
    }
  });
});
