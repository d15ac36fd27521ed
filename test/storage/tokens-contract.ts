/** What storage promises of tokens. */
import { beforeEach, describe, expect, test } from "bun:test";
import type { TokenRecord } from "../../src/domain/token.ts";
import type { Storage } from "../../src/storage/storage.ts";
import type { TestedStorage } from "./tested-storage.ts";

function tokenRecord(fields: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: "t1",
    hash: "h1",
    user: "alice",
    garden: "home",
    scope: "write",
    note: "",
    createdAtMs: 1_000,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
    ...fields,
  };
}

export function describeTokens(tested: () => TestedStorage): void {
  describe("tokens", () => {
    let storage: Storage;
    beforeEach(() => {
      storage = tested().storage;
    });

    test("are found by their hash, with everything that was given", async () => {
      const token = tokenRecord({ note: "for the \u{1f33f}", expiresAtMs: 5_000, scope: "read" });
      await storage.addToken(token);
      expect(await storage.findToken("h1")).toEqual(token);
      expect(await storage.findToken("h2")).toBeUndefined();
    });

    test("are listed in the order in which they were made, even after they are revoked", async () => {
      await storage.addToken(tokenRecord({ id: "b", hash: "1", createdAtMs: 1 }));
      await storage.addToken(tokenRecord({ id: "a", hash: "2", createdAtMs: 2 }));
      const revoked = [await storage.revokeToken("unknown", 2_000)];
      revoked.push(await storage.revokeToken("b", 2_000), await storage.revokeToken("b", 3_000));
      expect(revoked).toEqual([false, true, false]);
      const listed = (await storage.listTokens()).map(({ id, revokedAtMs }) => [id, revokedAtMs]);
      expect(listed).toEqual([
        ["b", 2_000],
        ["a", undefined],
      ]);
    });

    test("count their changes, including another process's", async () => {
      const before = await storage.countTokenChanges();
      await storage.addToken(tokenRecord());
      const afterAdding = await storage.countTokenChanges();
      const other = await tested().openAgain();
      await other.revokeToken("t1", 2_000);
      await other.close();
      const counts = [before, afterAdding, await storage.countTokenChanges()];
      expect(new Set(counts).size).toBe(3);
    });

    test("remember their last use, never move it back, and count that as no change", async () => {
      await storage.addToken(tokenRecord());
      const before = await storage.countTokenChanges();
      await storage.noteTokenUses([{ id: "t1", usedAtMs: 9_000 }]);
      await storage.noteTokenUses([{ id: "t1", usedAtMs: 8_000 }]);
      expect((await storage.findToken("h1"))?.lastUsedAtMs).toBe(9_000);
      expect(await storage.countTokenChanges()).toBe(before);
    });
  });
}
