/** Opaque tokens: form, checksum and hash, and that storage never sees the token itself. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { issueToken, isTokenForm, makeToken } from "./opaque-token.ts";

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

  test("leaves the token itself nowhere in the storage", async () => {
    const { token } = await issueToken(storage, { user: "dave" }, 0);
    for (const name of readdirSync(folder)) {
      const bytes = readFileSync(join(folder, name));
      expect(bytes.includes(token)).toBe(false);
      expect(bytes.includes(token.slice("plant_".length, -6))).toBe(false);
    }
  });
});
