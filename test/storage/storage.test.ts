/**
 * The promises of src/domain/ports.ts that an engine itself keeps: it stores exactly, reads in
 * order and in bounds, forgets, and shares with other processes. What a write comes to is decided
 * by rules.ts: rules.test.ts compares that with a model, writes.test.ts does so on both engines, and
 * test/contract/ shows it to clients.
 */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { plantIdMin } from "../../src/domain/plant.ts";
import type { ListOptions, Outcome, Write } from "../../src/domain/ports.ts";
import type { TokenRecord } from "../../src/domain/token.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { Storage, WriterOptions } from "../../src/storage/storage.ts";
import { auditStore } from "../../testing/audited-store.ts";
import { makeDatabase } from "../../testing/postgres-server.ts";
import { waitFor } from "../../testing/running-service.ts";
import { fastestParent, makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { create, created, emptyTables, put, remove } from "../../testing/tested-storage.ts";
import { skipsWithoutPooler, startPooler } from "../../testing/transaction-pooler.ts";

interface TestedPlace {
  /** The address of the storage. */
  readonly address: string;
  /** Runs a statement on the database itself, for what no service would write. */
  execute(sql: string): Promise<unknown>;
  remove(): Promise<void>;
}

const times = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index));

const dayMs = 86_400_000;
const keyed = (key: string, nowMs = 0, name = "Fern") =>
  create({ name, idempotency: { key, nowMs, expiresAtMs: nowMs + dayMs } });

const token: TokenRecord = {
  id: "t1",
  hash: "h1",
  user: "alice",
  garden: "home",
  scope: "read",
  note: "for the \u{1f33f}",
  createdAtMs: 1_000,
  expiresAtMs: 5_000,
  revokedAtMs: undefined,
  lastUsedAtMs: undefined,
};

/** The tests share a storage whose tables are emptied: a new one for each takes far longer. */
function describeStorage(engine: string, make: () => Promise<TestedPlace>): void {
  describe(`storage on ${engine}`, () => {
    let place: TestedPlace;
    let storage: Storage;

    beforeAll(async () => {
      place = await make();
      storage = await openStorage(place.address, { isServing: true });
    });
    afterEach(() => place.execute(emptyTables));
    afterAll(async () => {
      await storage.close();
      await place.remove();
    });

    /** Another process's view of the same data. The test closes it. */
    const openAgain = (options: WriterOptions = {}) =>
      openStorage(place.address, { isServing: false, ...options });

    const apply = (...writes: Write[]) => storage.apply(writes);

    async function ids(
      after?: bigint,
      count = 9,
      options: ListOptions & { garden?: string } = {},
    ): Promise<bigint[]> {
      const plants = await storage.list(options.garden ?? "home", after, count, options);
      return plants.map(({ id }) => id);
    }

    async function seqs(garden = "home", after = 0): Promise<number[]> {
      const { events } = await storage.readEvents(garden, after, 10_000, 1e6);
      return events.map(({ seq }) => seq);
    }

    async function forgetEvents(beforeMs: number, of = storage): Promise<void> {
      let garden: string | undefined = "";
      while (garden !== undefined) garden = await of.forgetEvents(beforeMs, garden);
    }

    describe("plants", () => {
      test("are listed up to so much text, but at least one", async () => {
        await apply(...["a", "b", "a", "a"].map((tag) => create({ tag })));
        expect(await ids(1n, 9, { charactersMax: 10 })).toEqual([2n, 3n]);
        expect(await ids(4n, 9, { order: "desc", charactersMax: 10 })).toEqual([3n, 2n]);
        expect(await ids(undefined, 9, { tag: "a", charactersMax: 1 })).toEqual([1n]);
        expect(await ids(4n, 9, { order: "desc", tag: "a", charactersMax: 1 })).toEqual([3n]);
      });

      test("are counted by tag, so many at a time", async () => {
        const tags = ["b", "a", "a", "a"];
        await apply(...tags.map((tag) => create({ tag })), create({ tag: "a", garden: "other" }));
        const counted = (tag: string, id: bigint, count: number) =>
          storage.countByTag("home", { tag, id }, count);
        const lastTag = { tag: "b", plants: 1, lastId: 1n };
        expect(await counted("", plantIdMin, 2)).toEqual([{ tag: "a", plants: 2, lastId: 3n }]);
        expect(await counted("a", 4n, 2)).toEqual([{ tag: "a", plants: 1, lastId: 4n }, lastTag]);
        expect(await counted("a\u0001", plantIdMin, 99)).toEqual([lastTag]);
        expect(await counted("b", 2n, 9)).toEqual([]);
      });

      test("are as before when a group fails, with their events and their count", async () => {
        await apply(create());
        const broken = create({ name: null as unknown as string });
        for (const write of [create(), put()]) {
          expect(await apply(write, broken).catch((error) => error)).toBeInstanceOf(Error);
        }
        expect([await ids(), await storage.countPlants("home")]).toEqual([[1n], 1]);
        expect(await storage.readEvents("home", 1, 9, 99)).toEqual({ events: [], lastEvent: 1 });
      });
    });

    test("the version changes with every change, by any process", async () => {
      await apply(create());
      let before = storage.version("home");
      if (before === undefined) return;
      expect(storage.version("home")).toBe(before);
      const other = await openAgain();
      await other.apply([create()]);
      await other.close();
      await waitFor(() => storage.version("home") !== before || undefined);
      for (const write of [create(), put({ id: 77n, name: "x" }), remove(1n)]) {
        before = storage.version("home");
        await apply(write);
        expect(storage.version("home")).not.toBe(before);
      }
    });

    describe("idempotency keys", () => {
      test("hold until they expire, not longer, and are then forgotten in bounded steps", async () => {
        await apply(...times(2_500, (index) => keyed(`k${index}`)));
        expect(await storage.forgetKeys(dayMs - 1)).toBe(false);
        expect(await apply(keyed("k1", dayMs - 1, "x"))).toEqual([{ kind: "mismatch" }]);
        expect(await apply(keyed("k1", dayMs, "x"))).toEqual([created(2_501n)]);
        expect(await apply(keyed("k1", dayMs + 1, "x"))).toEqual([created(2_501n, true)]);
        let steps = 1;
        while (await storage.forgetKeys(dayMs)) steps++;
        expect(steps).toBeGreaterThan(1);
        expect(await apply(keyed("k2499"))).toEqual([created(2_502n)]);
      });

      test("that are alike at their start are not taken for each other", async () => {
        const keys = ["k", "k".repeat(14), "k".repeat(15), `${"k".repeat(14)}l`, "K"];
        for (const isReplayed of [false, true]) {
          const outcomes = keys.map((_, index) => created(BigInt(index + 1), isReplayed));
          expect(await apply(...keys.map((key) => keyed(key)))).toEqual(outcomes);
        }
      });
    });

    describe("events", () => {
      const read = (after: number, count: number, charactersMax: number) =>
        storage.readEvents("home", after, count, charactersMax);

      test("are read in each garden from a number on, up to so many or so much text, but at least one", async () => {
        const names = ["a".repeat(9), "b", "c"];
        await apply(...names.map((name) => create({ name })), create({ garden: "other" }));
        expect([await seqs("other"), await seqs("home", 1)]).toEqual([[1], [2, 3]]);
        expect((await read(0, 2, 99)).events).toHaveLength(2);
        expect((await read(0, 9, 10)).events).toHaveLength(2);
        expect((await read(0, 9, 1)).events).toHaveLength(1);
        expect(await read(3, 9, 99)).toEqual({ events: [], lastEvent: 3 });
        expect(await storage.readEvents("none", undefined, 9, 99)).toMatchObject({ lastEvent: 0 });
      });

      test("are found new in the gardens whose last event is another one", async () => {
        await apply(create(), create({ garden: "b" }), create({ garden: "c" }));
        const known = { home: 0, b: 1, c: 2, d: 0 };
        const found = await storage.findNewEvents(new Map(Object.entries(known)));
        expect(Object.fromEntries(found)).toEqual({ home: 1, c: 1 });
      });

      test("are forgotten once they're old, the oldest of each garden only, however many there are", async () => {
        for (const garden of ["home", "other"]) {
          await apply(...[1, 2, 9, 3].map((atMs) => create({ garden, atMs })));
        }
        await forgetEvents(3);
        expect([await seqs(), await seqs("other")]).toEqual(Array(2).fill([3, 4]));
        const gardens = times(600, (index) => create({ garden: `g${index}` }));
        await apply(...gardens, ...times(2_100, () => create({ garden: "g7" })));
        await forgetEvents(10);
        expect([await seqs("g7"), await seqs("g599")]).toEqual([[], []]);
        expect(await read(4, 9, 99)).toEqual({ events: [], lastEvent: 4 });
      });
    });

    describe("a quota", () => {
      const plantsMax = 3;
      let limited: Storage;
      const full: Outcome = { kind: "full", limit: "plants", max: plantsMax };
      const deleted: Outcome = { kind: "deleted" };
      const applyLimited = (...writes: Write[]) => limited.apply(writes);

      beforeEach(async () => {
        limited = await openAgain({ plantsMax });
      });

      afterEach(() => limited.close());

      test("holds for a garden that had more before, until enough are gone", async () => {
        await apply(...times(4, () => create()));
        expect(await applyLimited(create(), remove(1n))).toEqual([full, deleted]);
        const writes = [create(), remove(2n), create(), create()];
        expect(await applyLimited(...writes)).toEqual([full, deleted, created(5n), full]);
      });

      test("bounds the keys of a garden, even if its plants are deleted", async () => {
        const keysMax = 10_000;
        const change = (key: string) => [{ ...keyed(key), id: 7n }, remove(7n)];
        await applyLimited(...change("k0"));
        await place.execute(`UPDATE gardens SET keys = ${keysMax - 1}`);
        const noKey: Outcome = { kind: "full", limit: "keys", max: keysMax };
        const writes = [...change("last"), keyed("one more"), { ...keyed("k0"), id: 7n }, create()];
        const outcomes = [created(7n), deleted, noKey, created(7n, true), created(8n)];
        expect(await applyLimited(...writes)).toEqual(outcomes);
        expect(await applyLimited(keyed("one more"))).toEqual([noKey]);
        while (await limited.forgetKeys(dayMs));
        expect(await applyLimited(keyed("one more"))).toEqual([created(9n)]);
      });

      test("bounds the events of a garden, to as many as it says, and not one less", async () => {
        const eventsMax = 10_000;
        const write = () => apply(create(), create(), create({ garden: "other" }));
        await write();
        await place.execute(`UPDATE gardens SET last_event = ${eventsMax} WHERE garden = 'home'`);
        await forgetEvents(0, limited);
        expect(await seqs()).toEqual([1, 2]);
        await write();
        await forgetEvents(0, limited);
        expect(await seqs()).toEqual([eventsMax + 1, eventsMax + 2]);
        expect(await seqs("other")).toEqual([1, 2]);
      });
    });

    describe("gardens", () => {
      test("are deleted with all that is in them, and nothing else is", async () => {
        const elsewhere = { ...keyed("k"), garden: "other" };
        // More than fit in one transaction.
        await apply(keyed("k"), elsewhere, ...times(1_001, () => create()));
        for (const garden of ["home", "none"]) await storage.deleteGarden(garden);
        expect(await storage.listGardens()).toMatchObject([
          { garden: "home", plants: 0, isEmpty: true },
          { garden: "other", plants: 1, isEmpty: false },
        ]);
        expect([await ids(), await seqs()]).toEqual([[], []]);
        // Its key is forgotten. Its ids go on, and its events a million later.
        expect(await apply(keyed("k"), elsewhere)).toEqual([created(1_003n), created(1n, true)]);
        expect(await seqs()).toEqual([1_001_003]);
      });

      test("are empty once nothing is kept in them", async () => {
        const areEmpty = async () => (await storage.listGardens()).map(({ isEmpty }) => isEmpty);
        await apply(keyed("k"));
        expect(await areEmpty()).toEqual([false]);
        await apply(remove(1n));
        await forgetEvents(1);
        // Its key is left.
        expect(await areEmpty()).toEqual([false]);
        while (await storage.forgetKeys(dayMs));
        expect(await areEmpty()).toEqual([true]);
        await apply(put(), remove(7n));
        // Its events are left.
        expect(await areEmpty()).toEqual([false]);
      });

      test("that are deleted, and whose keys are forgotten, while somebody writes keep exact counts", async () => {
        const other = await openAgain();
        const writing = async () => {
          for (let round = 0; round < 40; round++) {
            const idempotency = { key: `k${round % 3}`, nowMs: round, expiresAtMs: round + 2 };
            await apply(create({ idempotency }), create({ idempotency, garden: "other" }));
            await apply(create({ id: BigInt(round + 1_000) }), remove(1n));
          }
        };
        const deleting = async () => {
          for (let round = 0; round < 40; round++) {
            await other.forgetKeys(round);
            if (round % 4 === 0) await other.deleteGarden("home");
          }
        };
        await Promise.all([writing(), deleting()]);
        await other.close();
        expect(await auditStore(place.address)).toEqual([]);
      });
    });

    describe("tokens", () => {
      test("are found by their hash, and listed in the order in which they were made", async () => {
        await storage.addToken({ ...token, id: "b" });
        expect(await storage.findToken("h1")).toEqual({ ...token, id: "b" });
        expect(await storage.findToken("h2")).toBeUndefined();
        await storage.addToken({ ...token, id: "a", hash: "h2", createdAtMs: 2_000 });
        const revoke = (id: string, atMs: number) => storage.revokeToken(id, atMs);
        const revoked = [await revoke("none", 2), await revoke("b", 2), await revoke("b", 3)];
        expect(revoked).toEqual([false, true, false]);
        expect(await storage.listTokens()).toMatchObject([
          { id: "b", revokedAtMs: 2 },
          { id: "a", revokedAtMs: undefined },
        ]);
      });

      test("count their changes, including another process's, and no use, whose time never goes back", async () => {
        const counts = [await storage.countTokenChanges()];
        await storage.addToken(token);
        counts.push(await storage.countTokenChanges());
        for (const usedAtMs of [9_000, 8_000]) {
          await storage.noteTokenUses([{ id: "t1", usedAtMs }]);
        }
        expect((await storage.findToken("h1"))?.lastUsedAtMs).toBe(9_000);
        expect(await storage.countTokenChanges()).toBe(counts[1] as number);
        const other = await openAgain();
        await other.revokeToken("t1", 2_000);
        await other.close();
        counts.push(await storage.countTokenChanges());
        expect(new Set(counts).size).toBe(3);
      });
    });
  });
}

describeStorage("SQLite", async () => {
  const folder = makeTemporaryFolder(fastestParent());
  const address = join(folder.path, "plants.db");
  return {
    address,
    async execute(sql) {
      using database = new Database(address);
      database.run(sql);
    },
    remove: async () => folder[Symbol.dispose](),
  };
});

describeStorage("PostgreSQL", async () => {
  const { url, query, drop } = await makeDatabase();
  return { address: url, execute: query, remove: drop };
});

// In transaction mode: nothing rests on a session.
describe.skipIf(skipsWithoutPooler())("behind PgBouncer", () => {
  describeStorage("PostgreSQL", async () => {
    const { url, query, drop } = await makeDatabase();
    const pooler = await startPooler(url);
    const remove = () => pooler.stop().then(drop);
    return { address: pooler.url, execute: query, remove };
  });
});
