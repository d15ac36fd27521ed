/** What storage promises of moves. */
import { beforeEach, describe, expect, test } from "bun:test";
import { plantIdMax, plantIdMin } from "../../src/domain/plant.ts";
import type { Storage } from "../../src/domain/storage.ts";
import { type MovedRecords, recordKinds, type TransferStorage } from "../../src/domain/transfer.ts";
import { create, created, remove, type TestedStorage } from "./tested-storage.ts";

/** In the order of their bytes: U+FFFD comes before U+10000, which JavaScript has the other way. */
const gardens = ["A", "Z", "a", "a b", "ab", "z", "ß", "é", "\u{fffd}", "\u{10000}", "\u{1f33f}"];

function plant(garden: string, id: bigint, name = "Fern", tag = ""): MovedRecords["plants"] {
  return { garden, id, name, tag };
}

function token(id: string, fields: Partial<MovedRecords["tokens"]> = {}): MovedRecords["tokens"] {
  return {
    id,
    hash: `hash of ${id}`,
    user: "alice",
    garden: "home",
    scope: "write",
    note: "",
    createdAtMs: 1_000,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
    position: 1n,
    ...fields,
  };
}

function key(garden: string, text: string, expiresAtMs = 2_000): MovedRecords["keys"] {
  return { garden, key: text, request: "r", plantId: 2n ** 53n + 1n, expiresAtMs };
}

export function describeTransfer(tested: () => TestedStorage): void {
  describe("moves", () => {
    let storage: Storage;
    let transfer: TransferStorage;
    beforeEach(() => {
      storage = tested().storage;
      transfer = storage.transfer(1_000);
    });

    test("find nothing in a new storage", async () => {
      for (const kind of recordKinds) {
        expect(await transfer.read(kind, undefined, 10)).toEqual([]);
        expect(await transfer.last(kind)).toBeUndefined();
        expect(await transfer.count(kind)).toBe(0);
      }
    });

    test("read plants by the bytes of the garden and then by id, in batches", async () => {
      const ids = [plantIdMin, -1n, 0n, 2n ** 53n, 2n ** 53n + 1n, plantIdMax];
      const plants = gardens.flatMap((garden) => ids.map((id) => plant(garden, id)));
      await transfer.add("plants", plants.toReversed());
      const read: MovedRecords["plants"][] = [];
      for (let after: MovedRecords["plants"] | undefined; ; after = read.at(-1)) {
        const batch = await transfer.read("plants", after, 7);
        if (batch.length === 0) break;
        read.push(...batch);
      }
      expect(read).toEqual(plants);
      expect(await transfer.last("plants")).toEqual(plants.at(-1));
      expect(await transfer.count("plants")).toBe(plants.length);
      expect(await transfer.count("plants", plants[9])).toBe(plants.length - 10);
    });

    test("read counters and keys by the bytes of the garden, and keys by those of the key", async () => {
      const counters = gardens.map((garden, index) => ({ garden, lastId: BigInt(index) }));
      const keys = gardens.flatMap((garden) => [key(garden, "K"), key(garden, "k")]);
      await transfer.add("counters", counters.toReversed());
      await transfer.add("keys", keys.toReversed());
      expect(await transfer.read("counters", undefined, 100)).toEqual(counters);
      expect(await transfer.read("counters", counters[3], 2)).toEqual(counters.slice(4, 6));
      expect(await transfer.read("keys", undefined, 100)).toEqual(keys);
      expect(await transfer.read("keys", keys[4], 2)).toEqual(keys.slice(5, 7));
      expect([await transfer.last("counters"), await transfer.last("keys")]).toEqual([
        counters.at(-1),
        keys.at(-1),
      ]);
      expect([await transfer.count("counters", counters[3]), await transfer.count("keys")]).toEqual(
        [7, 22],
      );
    });

    test("read what the service has stored", async () => {
      const idempotency = { key: "k", request: "r", nowMs: 0, expiresAtMs: 5_000 };
      await storage.apply([create({ id: 7n, name: "Ficus", tag: "\u{1f33f}", idempotency })]);
      await storage.apply([create({ id: 9n }), remove(9n)]);
      const record = { ...token("t"), note: "é", scope: "read" as const, expiresAtMs: 9_000 };
      await storage.addToken(record);
      await storage.revokeToken("t", 3_000);
      await storage.noteTokenUses([{ id: "t", usedAtMs: 2_000 }]);
      expect(await transfer.read("plants", undefined, 9)).toEqual([
        plant("home", 7n, "Ficus", "\u{1f33f}"),
      ]);
      expect(await transfer.read("counters", undefined, 9)).toEqual([
        { garden: "home", lastId: 9n },
      ]);
      expect(await transfer.read("keys", undefined, 9)).toEqual([
        { garden: "home", key: "k", request: "r", plantId: 7n, expiresAtMs: 5_000 },
      ]);
      const [found] = await transfer.read("tokens", undefined, 9);
      const moved = { ...record, revokedAtMs: 3_000, lastUsedAtMs: 2_000 };
      expect(found).toEqual({ ...moved, position: found?.position as bigint });
    });

    test("leave out keys that have expired", async () => {
      await transfer.add("keys", [key("home", "old", 1_000), key("home", "young", 1_001)]);
      expect((await transfer.read("keys", undefined, 9)).map(({ key }) => key)).toEqual(["young"]);
      expect([await transfer.count("keys"), (await transfer.last("keys"))?.key]).toEqual([
        1,
        "young",
      ]);
    });

    test("store records for the service as if it had stored them itself", async () => {
      await transfer.add("plants", [plant("home", 7n, " \u{1f33f}'\\\"")]);
      await transfer.add("counters", [{ garden: "home", lastId: 41n }]);
      await transfer.add("keys", [key("home", "k")]);
      await transfer.add("tokens", [token("t", { revokedAtMs: 3_000, lastUsedAtMs: 2_000 })]);
      expect(await storage.list("home", undefined, 9)).toEqual([
        { id: 7n, name: " \u{1f33f}'\\\"", tag: "" },
      ]);
      const idempotency = { key: "k", request: "r", nowMs: 1_000, expiresAtMs: 9_000 };
      expect(await storage.apply([create({ idempotency }), create()])).toEqual([
        created(2n ** 53n + 1n, true),
        created(42n),
      ]);
      expect(await storage.findToken("hash of t")).toMatchObject({
        id: "t",
        revokedAtMs: 3_000,
        lastUsedAtMs: 2_000,
      });
    });

    test("keep the order of tokens of the same moment, before those that are made later", async () => {
      const changes = await storage.countTokenChanges();
      await transfer.add("tokens", [token("a", { position: 900n }), token("b", { position: 2n })]);
      expect(await storage.countTokenChanges()).not.toBe(changes);
      await storage.addToken(token("0"));
      expect((await storage.listTokens()).map(({ id }) => id)).toEqual(["b", "a", "0"]);
    });

    test("change nothing when a record is there already, the same or another", async () => {
      await transfer.add("plants", [plant("home", 1n, "first")]);
      await transfer.add("counters", [{ garden: "home", lastId: 5n }]);
      await transfer.add("keys", [key("home", "k", 3_000)]);
      await transfer.add("tokens", [token("t")]);
      await transfer.add("plants", [plant("home", 1n, "second"), plant("home", 2n, "new")]);
      await transfer.add("counters", [{ garden: "home", lastId: 6n }]);
      await transfer.add("keys", [key("home", "k", 4_000)]);
      await transfer.add("tokens", [
        token("t", { note: "other" }),
        token("of the same hash", { hash: "hash of t", position: 7n }),
      ]);
      const names = (await storage.list("home", undefined, 9)).map(({ name }) => name);
      expect(names).toEqual(["first", "new"]);
      expect((await transfer.last("counters"))?.lastId).toBe(5n);
      expect((await transfer.last("keys"))?.expiresAtMs).toBe(3_000);
      expect((await storage.listTokens()).map(({ id, note }) => [id, note])).toEqual([["t", ""]]);
    });

    test("show at once what they stored, also in the version", async () => {
      const before = storage.version();
      await transfer.add("plants", [plant("home", 1n)]);
      expect(await storage.list("home", undefined, 9)).toHaveLength(1);
      await new Promise((resolve) => setImmediate(resolve));
      if (before !== undefined) expect(storage.version()).not.toBe(before);
    });
  });
}
