/**
 * The promises of src/domain/ports.ts that each engine has to keep: limits of reads, keys and
 * events that expire, quotas, deleted gardens, tokens, and changes by other processes. The outcome
 * of a write is decided by rules.ts. That is tested in rules.test.ts, in writes.test.ts on both
 * engines, and in test/contract/ as clients see it.
 */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Client } from "pg";
import { plantIdMin } from "../../src/domain/plant.ts";
import type { CreateWrite, ListOptions, Outcome } from "../../src/domain/ports.ts";
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

interface KeyedFields {
  readonly key: string;
  /** When the create was sent. Its key expires a day later. */
  readonly nowMs?: number;
  readonly id?: bigint;
  readonly name?: string;
  readonly garden?: string;
}

/** A create with an idempotency key. */
function createWithKey({ key, nowMs = 0, ...fields }: KeyedFields): CreateWrite {
  return create({ ...fields, idempotency: { key, nowMs, expiresAtMs: nowMs + dayMs } });
}

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
function describeStorage(engine: "SQLite" | "PostgreSQL", make: () => Promise<TestedPlace>): void {
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

    /** The ids of up to 9 plants of the garden "home". */
    async function listIds({
      after,
      ...options
    }: ListOptions & { after?: bigint } = {}): Promise<bigint[]> {
      const plants = await storage.list("home", after, 9, options);
      return plants.map(({ id }) => id);
    }

    /** The numbers of all events that the garden has. */
    async function listEventNumbers(garden: string): Promise<number[]> {
      const { events } = await storage.readEvents(garden, 0, 10_000, 1e6);
      return events.map(({ seq }) => seq);
    }

    /** In all gardens, some gardens at a time. */
    async function forgetEvents(beforeMs: number, from = storage): Promise<void> {
      let garden: string | undefined = "";
      while (garden !== undefined) garden = await from.forgetEvents(beforeMs, garden);
    }

    /** Of everything that has expired, some at a time. Returns how often it had to be called. */
    async function forgetKeys(nowMs: number): Promise<number> {
      let calls = 1;
      while (await storage.forgetKeys(nowMs)) calls++;
      return calls;
    }

    describe("a list with a limit on its characters", () => {
      beforeEach(async () => {
        // Each has 5 characters.
        await storage.apply([
          create({ name: "Fern", tag: "a" }),
          create({ name: "Fern", tag: "b" }),
          create({ name: "Fern", tag: "a" }),
          create({ name: "Fern", tag: "a" }),
        ]);
      });

      test("stops before it would exceed the limit", async () => {
        expect(await listIds({ after: 1n, charactersMax: 10 })).toEqual([2n, 3n]);
      });

      test("stops there in descending order, too", async () => {
        const ids = await listIds({ after: 4n, order: "desc", charactersMax: 10 });
        expect(ids).toEqual([3n, 2n]);
      });

      test("has one plant of a tag even if that exceeds the limit", async () => {
        expect(await listIds({ tag: "a", charactersMax: 1 })).toEqual([1n]);
      });

      test("has one plant of a tag in descending order, too", async () => {
        const ids = await listIds({ after: 4n, order: "desc", tag: "a", charactersMax: 1 });
        expect(ids).toEqual([3n]);
      });
    });

    describe("counting by tag", () => {
      beforeEach(async () => {
        await storage.apply([
          create({ tag: "b" }),
          create({ tag: "a" }),
          create({ tag: "a" }),
          create({ tag: "a" }),
          create({ tag: "a", garden: "other" }),
        ]);
      });

      test("starts with the first tag and stops after the requested number of plants", async () => {
        const counted = await storage.countByTag("home", { tag: "", id: plantIdMin }, 2);
        expect(counted).toEqual([{ tag: "a", plants: 2, lastId: 3n }]);
      });

      test("goes on from the middle of a tag to the next one", async () => {
        const counted = await storage.countByTag("home", { tag: "a", id: 4n }, 2);
        expect(counted).toEqual([
          { tag: "a", plants: 1, lastId: 4n },
          { tag: "b", plants: 1, lastId: 1n },
        ]);
      });

      test("starts at the next tag if no plant has the requested one", async () => {
        const counted = await storage.countByTag("home", { tag: "a\u0001", id: plantIdMin }, 99);
        expect(counted).toEqual([{ tag: "b", plants: 1, lastId: 1n }]);
      });

      test("finds nothing after the last plant", async () => {
        expect(await storage.countByTag("home", { tag: "b", id: 2n }, 9)).toEqual([]);
      });
    });

    test.each([
      { kind: "create", first: create() },
      { kind: "put", first: put() },
    ])("a group of a $kind and a write that fails changes nothing", async ({ first }) => {
      await storage.apply([create()]);
      const failing = create({ name: null as unknown as string });

      const error = await storage.apply([first, failing]).catch((error) => error);

      expect(error).toBeInstanceOf(Error);
      expect(await listIds()).toEqual([1n]);
      expect(await storage.countPlants("home")).toBe(1);
      expect(await storage.readEvents("home", 1, 9, 99)).toEqual({ events: [], lastEvent: 1 });
    });

    if (engine === "SQLite") {
      describe("the version of a garden", () => {
        beforeEach(async () => {
          await storage.apply([create()]);
        });

        test("stays the same while nothing changes", () => {
          const version = storage.version("home");
          expect(version).toBeDefined();
          expect(storage.version("home")).toBe(version);
        });

        test.each([
          { kind: "create", write: create() },
          { kind: "put", write: put({ id: 77n, name: "x" }) },
          { kind: "delete", write: remove(1n) },
        ])("is another one after a $kind", async ({ write }) => {
          const before = storage.version("home");
          await storage.apply([write]);
          expect(storage.version("home")).not.toBe(before);
        });

        test("changes soon after another process's write", async () => {
          const before = storage.version("home");
          const other = await openAgain();
          await other.apply([create()]);
          await other.close();
          await waitFor(() => storage.version("home") !== before || undefined);
        });
      });
    } else {
      test("a garden has no version: reading one would cost as much as reading plants", async () => {
        await storage.apply([create()]);
        expect(storage.version("home")).toBeUndefined();
      });
    }

    describe("an idempotency key", () => {
      test("is in force until the last millisecond of its day", async () => {
        await storage.apply([createWithKey({ key: "k", name: "Fern" })]);
        const other = createWithKey({ key: "k", name: "Moss", nowMs: dayMs - 1 });
        expect(await storage.apply([other])).toEqual([{ kind: "mismatch" }]);
      });

      test("can be used for another plant once it has expired", async () => {
        await storage.apply([createWithKey({ key: "k", name: "Fern" })]);
        const other = createWithKey({ key: "k", name: "Moss", nowMs: dayMs });
        expect(await storage.apply([other])).toEqual([created(2n)]);
      });

      test("is in force for another day after it was used again", async () => {
        await storage.apply([createWithKey({ key: "k", name: "Fern" })]);
        await storage.apply([createWithKey({ key: "k", name: "Moss", nowMs: dayMs })]);
        const retry = createWithKey({ key: "k", name: "Moss", nowMs: dayMs + 1 });
        expect(await storage.apply([retry])).toEqual([created(2n, true)]);
      });

      test("isn't confused with one that starts like it", async () => {
        const creates = [
          createWithKey({ key: "k" }),
          createWithKey({ key: "K" }),
          // The first 14 characters of a key are stored as they are.
          createWithKey({ key: "kkkkkkkkkkkkkk" }),
          createWithKey({ key: "kkkkkkkkkkkkkkk" }),
          createWithKey({ key: "kkkkkkkkkkkkkkl" }),
        ];
        expect(await storage.apply(creates)).toEqual([
          created(1n),
          created(2n),
          created(3n),
          created(4n),
          created(5n),
        ]);
        expect(await storage.apply(creates)).toEqual([
          created(1n, true),
          created(2n, true),
          created(3n, true),
          created(4n, true),
          created(5n, true),
        ]);
      });
    });

    describe("forgetting keys", () => {
      beforeEach(async () => {
        await storage.apply(times(2_500, (index) => createWithKey({ key: `k${index}` })));
      });

      test("keeps those that haven't expired, and reports that none is left to forget", async () => {
        expect(await storage.forgetKeys(dayMs - 1)).toBe(false);
        const retry = createWithKey({ key: "k1", nowMs: dayMs - 1 });
        expect(await storage.apply([retry])).toEqual([created(2n, true)]);
      });

      test("takes several steps if many have expired", async () => {
        expect(await forgetKeys(dayMs)).toBeGreaterThan(1);
        // Sent when the key was new, so only its absence makes this another plant.
        const again = createWithKey({ key: "k2499", nowMs: 0 });
        expect(await storage.apply([again])).toEqual([created(2_501n)]);
      });
    });

    describe("reading events", () => {
      beforeEach(async () => {
        await storage.apply([
          create({ name: "aaaaaaaaa" }),
          create({ name: "b" }),
          create({ name: "c" }),
          create({ name: "Fern", garden: "other" }),
        ]);
      });

      test("counts from 1 in each garden", async () => {
        expect(await listEventNumbers("home")).toEqual([1, 2, 3]);
        expect(await listEventNumbers("other")).toEqual([1]);
      });

      test("starts after the given number", async () => {
        const { events } = await storage.readEvents("home", 1, 10_000, 1e6);
        expect(events).toMatchObject([{ seq: 2 }, { seq: 3 }]);
      });

      test("stops after the requested number of events", async () => {
        const { events } = await storage.readEvents("home", 0, 2, 99);
        expect(events).toMatchObject([{ seq: 1 }, { seq: 2 }]);
      });

      test("stops before the plants have more characters than requested", async () => {
        const { events } = await storage.readEvents("home", 0, 9, 10);
        expect(events).toMatchObject([{ seq: 1 }, { seq: 2 }]);
      });

      test("returns one event even if its plant has more characters", async () => {
        const { events } = await storage.readEvents("home", 0, 9, 1);
        expect(events).toMatchObject([{ seq: 1 }]);
      });

      test("returns the number of the last event even if none follows", async () => {
        expect(await storage.readEvents("home", 3, 9, 99)).toEqual({ events: [], lastEvent: 3 });
      });

      test("returns 0 as the last event of a garden without events", async () => {
        const page = await storage.readEvents("none", undefined, 9, 99);
        expect(page).toEqual({ events: [], lastEvent: 0 });
      });
    });

    test("new events are found in the gardens whose last event is another one", async () => {
      await storage.apply([create(), create({ garden: "b" }), create({ garden: "c" })]);
      const known = new Map([
        ["home", 0],
        ["b", 1],
        ["c", 2],
        ["d", 0],
      ]);
      const found = await storage.findNewEvents(known);
      expect(Object.fromEntries(found)).toEqual({ home: 1, c: 1 });
    });

    describe("forgetting events", () => {
      /** Makes one event at each of these times. */
      const writeAt = (garden: string, timesMs: readonly number[]) =>
        storage.apply(timesMs.map((atMs) => create({ garden, atMs })));

      test("keeps those from the given time on, in every garden", async () => {
        await writeAt("home", [1, 2, 9, 3]);
        await writeAt("other", [1, 2, 9, 3]);
        await forgetEvents(3);
        expect(await listEventNumbers("home")).toEqual([3, 4]);
        expect(await listEventNumbers("other")).toEqual([3, 4]);
      });

      test("leaves no gap: an old event stays if an earlier one is kept", async () => {
        await writeAt("home", [1, 2, 9, 3]);
        await forgetEvents(5);
        expect(await listEventNumbers("home")).toEqual([3, 4]);
      });

      test("keeps the number of the last event", async () => {
        await writeAt("home", [1, 2, 9, 3]);
        await forgetEvents(10);
        expect(await storage.readEvents("home", 4, 9, 99)).toEqual({ events: [], lastEvent: 4 });
      });

      test("reaches all gardens and all events, however many there are", async () => {
        await storage.apply(times(600, (index) => create({ garden: `g${index}` })));
        await storage.apply(times(2_100, () => create({ garden: "g7" })));
        await forgetEvents(10);
        expect(await listEventNumbers("g7")).toEqual([]);
        expect(await listEventNumbers("g599")).toEqual([]);
      });
    });

    describe("a quota of 3 plants", () => {
      let limited: Storage;
      const deleted: Outcome = { kind: "deleted" };

      beforeEach(async () => {
        limited = await openAgain({ plantsMax: 3 });
      });

      afterEach(() => limited.close());

      test("holds for a garden that already has more, until enough are deleted", async () => {
        const full: Outcome = { kind: "full", limit: "plants", max: 3 };
        await storage.apply([create(), create(), create(), create()]);
        expect(await limited.apply([create(), remove(1n)])).toEqual([full, deleted]);
        // Now it has 3.
        const outcomes = await limited.apply([create(), remove(2n), create(), create()]);
        expect(outcomes).toEqual([full, deleted, created(5n), full]);
      });

      describe("allows 10,000 idempotency keys, and", () => {
        const full: Outcome = { kind: "full", limit: "keys", max: 10_000 };

        beforeEach(async () => {
          // A key stays when its plant is deleted.
          await limited.apply([createWithKey({ key: "first", id: 7n }), remove(7n)]);
          await place.execute("UPDATE gardens SET keys = 9999");
          const last = createWithKey({ key: "last", id: 7n });
          expect(await limited.apply([last, remove(7n)])).toEqual([created(7n), deleted]);
        });

        test("refuses another one", async () => {
          const outcomes = await limited.apply([createWithKey({ key: "one more" })]);
          expect(outcomes).toEqual([full]);
        });

        test("refuses another one in the group that uses the last", async () => {
          await place.execute("UPDATE gardens SET keys = 9999");
          const outcomes = await limited.apply([
            createWithKey({ key: "the last again", id: 7n }),
            remove(7n),
            createWithKey({ key: "one more" }),
          ]);
          expect(outcomes).toEqual([created(7n), deleted, full]);
        });

        test("still replays a create with a key that it knows", async () => {
          const retry = createWithKey({ key: "first", id: 7n });
          expect(await limited.apply([retry])).toEqual([created(7n, true)]);
        });

        test("still creates plants without a key", async () => {
          expect(await limited.apply([create()])).toEqual([created(8n)]);
        });

        test("accepts new ones once the old ones are forgotten", async () => {
          await forgetKeys(dayMs);
          const outcomes = await limited.apply([createWithKey({ key: "one more" })]);
          expect(outcomes).toEqual([created(8n)]);
        });
      });

      describe("allows 10,000 events, and", () => {
        beforeEach(async () => {
          await storage.apply([create(), create(), create({ garden: "other" })]);
          await place.execute("UPDATE gardens SET last_event = 10000 WHERE garden = 'home'");
        });

        test("forgets none up to there", async () => {
          await forgetEvents(0, limited);
          expect(await listEventNumbers("home")).toEqual([1, 2]);
        });

        test("forgets the oldest beyond that, in this garden only", async () => {
          await storage.apply([create(), create(), create({ garden: "other" })]);
          await forgetEvents(0, limited);
          expect(await listEventNumbers("home")).toEqual([10_001, 10_002]);
          expect(await listEventNumbers("other")).toEqual([1, 2]);
        });
      });
    });

    describe("a deleted garden", () => {
      beforeEach(async () => {
        await storage.apply([
          createWithKey({ key: "k" }),
          createWithKey({ key: "k", garden: "other" }),
          // More than fit in one transaction.
          ...times(1_001, () => create()),
        ]);
        await storage.deleteGarden("home");
      });

      test("has no plants or events", async () => {
        expect(await listIds()).toEqual([]);
        expect(await listEventNumbers("home")).toEqual([]);
      });

      test("is listed as empty, and other gardens as before", async () => {
        expect(await storage.listGardens()).toMatchObject([
          { garden: "home", plants: 0, isEmpty: true },
          { garden: "other", plants: 1, isEmpty: false },
        ]);
      });

      test("assigns higher ids than before", async () => {
        expect(await storage.apply([create()])).toEqual([created(1_003n)]);
      });

      test("numbers new events a million higher", async () => {
        await storage.apply([create()]);
        expect(await listEventNumbers("home")).toEqual([1_001_003]);
      });

      test("has forgotten its keys, and other gardens keep theirs", async () => {
        const outcomes = await storage.apply([
          createWithKey({ key: "k" }),
          createWithKey({ key: "k", garden: "other" }),
        ]);
        expect(outcomes).toEqual([created(1_003n), created(1n, true)]);
      });
    });

    test("deleting a garden that was never used makes none", async () => {
      await storage.apply([create()]);
      await storage.deleteGarden("none");
      expect(await storage.listGardens()).toMatchObject([{ garden: "home", plants: 1 }]);
    });

    describe("a garden", () => {
      test("isn't empty while it has plants", async () => {
        await storage.apply([create()]);
        await forgetEvents(1);
        expect(await storage.listGardens()).toMatchObject([{ garden: "home", isEmpty: false }]);
      });

      test("isn't empty while it has keys", async () => {
        await storage.apply([createWithKey({ key: "k" }), remove(1n)]);
        await forgetEvents(1);
        expect(await storage.listGardens()).toMatchObject([{ garden: "home", isEmpty: false }]);
      });

      test("isn't empty while it has events", async () => {
        await storage.apply([put(), remove(7n)]);
        expect(await storage.listGardens()).toMatchObject([{ garden: "home", isEmpty: false }]);
      });

      test("is empty once its plants, keys and events are gone", async () => {
        await storage.apply([createWithKey({ key: "k" }), remove(1n)]);
        await forgetEvents(1);
        await forgetKeys(dayMs);
        expect(await storage.listGardens()).toMatchObject([{ garden: "home", isEmpty: true }]);
      });
    });

    test("the store stays whole, with exact counts, if a garden is deleted and keys are forgotten during writes", async () => {
      const other = await openAgain();
      const writing = async () => {
        for (let round = 0; round < 40; round++) {
          const idempotency = { key: `k${round % 3}`, nowMs: round, expiresAtMs: round + 2 };
          await storage.apply([create({ idempotency }), create({ idempotency, garden: "other" })]);
          await storage.apply([create({ id: BigInt(round + 1_000) }), remove(1n)]);
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

    describe("a token", () => {
      test("is found by its hash", async () => {
        await storage.addToken(token);
        expect(await storage.findToken("h1")).toEqual(token);
      });

      test("isn't found by another hash", async () => {
        await storage.addToken(token);
        expect(await storage.findToken("h2")).toBeUndefined();
      });

      test("is listed in the order of creation", async () => {
        await storage.addToken({ ...token, id: "b", hash: "h1", createdAtMs: 1_000 });
        await storage.addToken({ ...token, id: "a", hash: "h2", createdAtMs: 2_000 });
        expect(await storage.listTokens()).toMatchObject([{ id: "b" }, { id: "a" }]);
      });

      test("is revoked once, and others aren't", async () => {
        await storage.addToken({ ...token, id: "b", hash: "h1", createdAtMs: 1_000 });
        await storage.addToken({ ...token, id: "a", hash: "h2", createdAtMs: 2_000 });
        expect(await storage.revokeToken("b", 2)).toBe(true);
        expect(await storage.revokeToken("b", 3)).toBe(false);
        expect(await storage.listTokens()).toMatchObject([
          { id: "b", revokedAtMs: 2 },
          { id: "a", revokedAtMs: undefined },
        ]);
      });

      test("that doesn't exist can't be revoked", async () => {
        expect(await storage.revokeToken("none", 2)).toBe(false);
      });

      test("has the time of its last use, which never goes back", async () => {
        await storage.addToken(token);
        await storage.noteTokenUses([{ id: "t1", usedAtMs: 9_000 }]);
        await storage.noteTokenUses([{ id: "t1", usedAtMs: 8_000 }]);
        expect(await storage.findToken("h1")).toEqual({ ...token, lastUsedAtMs: 9_000 });
      });
    });

    describe("the count of token changes", () => {
      test("differs after every change, by any process", async () => {
        const before = await storage.countTokenChanges();
        await storage.addToken(token);
        const afterAdding = await storage.countTokenChanges();
        const other = await openAgain();
        await other.revokeToken("t1", 2_000);
        await other.close();
        const afterRevoking = await storage.countTokenChanges();

        expect(afterAdding).not.toBe(before);
        expect(afterRevoking).not.toBe(before);
        expect(afterRevoking).not.toBe(afterAdding);
      });

      test("stays the same when a token is used", async () => {
        await storage.addToken(token);
        const before = await storage.countTokenChanges();
        await storage.noteTokenUses([{ id: "t1", usedAtMs: 9_000 }]);
        expect(await storage.countTokenChanges()).toBe(before);
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

/** Statements share a connection: another one for each takes longer than most tests. */
async function makePostgres() {
  const { url, drop } = await makeDatabase();
  const client = new Client(url);
  await client.connect();
  return {
    url,
    execute: (sql: string) => client.query(sql),
    async remove() {
      await client.end();
      await drop();
    },
  };
}

describeStorage("PostgreSQL", async () => {
  const { url, execute, remove } = await makePostgres();
  return { address: url, execute, remove };
});

// In transaction mode: nothing rests on a session.
describe.skipIf(skipsWithoutPooler())("behind PgBouncer", () => {
  describeStorage("PostgreSQL", async () => {
    const { url, execute, remove } = await makePostgres();
    const pooler = await startPooler(url);
    return { address: pooler.url, execute, remove: () => pooler.stop().then(remove) };
  });
});
