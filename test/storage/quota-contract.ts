/** What storage promises where a garden may hold a limited number of plants. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Outcome, Write } from "../../src/domain/ports.ts";
import {
  applyPatiently,
  create,
  created,
  put,
  remove,
  type StorageWish,
  type TestedStorage,
} from "./tested-storage.ts";

const plantsMax = 3;
const full: Outcome = { kind: "full", limit: "plants", max: plantsMax };

export function describeQuota(
  engine: string,
  make: (options: StorageWish) => Promise<TestedStorage>,
): void {
  describe(`a quota on ${engine}`, () => {
    let tested: TestedStorage;

    beforeEach(async () => {
      tested = await make({ plantsMax });
    });

    afterEach(() => tested.remove());

    const apply = (...writes: Write[]) => applyPatiently(tested.storage, writes);
    const kinds = async (...writes: Write[]) => (await apply(...writes)).map(({ kind }) => kind);
    const countPlants = async () => (await tested.storage.list("home", undefined, 1_000)).length;

    test("lets a garden hold as many plants as it says, and not one more", async () => {
      expect(await apply(create())).toEqual([created(1n)]);
      expect(await apply(create({ id: -5n }), create())).toEqual([created(-5n), created(2n)]);
      expect(await apply(create())).toEqual([full]);
      const elsewhere = create({ garden: "other" });
      expect(await apply(create({ id: 9n }), elsewhere)).toEqual([full, created(1n)]);
      expect(await countPlants()).toBe(plantsMax);
    });

    test("is decided in the order of a group, even if deletions make room", async () => {
      const outcomes = await kinds(
        create({ id: 1n }),
        create({ id: 2n }),
        create({ id: 3n }),
        create({ id: 4n }),
        remove(1n),
        create({ id: 4n }),
        create({ id: 5n }),
        remove(9n),
        remove(2n),
        remove(3n),
        create(),
        create(),
        create(),
      );
      expect(outcomes).toEqual([
        "created",
        "created",
        "created",
        "full",
        "deleted",
        "created",
        "full",
        "missing",
        "deleted",
        "deleted",
        "created",
        "created",
        "full",
      ] as typeof outcomes);
      expect(await countPlants()).toBe(plantsMax);
    });

    test("is checked after keys that were used and ids that are taken", async () => {
      const keyed = (name: string) => ({
        name,
        idempotency: { key: "k", nowMs: 0, expiresAtMs: 1_000 },
      });
      await apply(create({ id: 7n, ...keyed("r") }), create(), create());
      expect(await apply(create({ id: 7n, ...keyed("r") }))).toEqual([created(7n, true)]);
      expect(await kinds(create({ ...keyed("other") }))).toEqual(["mismatch"]);
      expect(await kinds(create({ id: 7n }))).toEqual(["taken"]);
    });

    test("remembers no key of a plant that it refused", async () => {
      await apply(create(), create(), create());
      const keyed = create({ idempotency: { key: "k", nowMs: 0, expiresAtMs: 9 } });
      expect(await apply(keyed)).toEqual([full]);
      await apply(remove(1n));
      expect(await apply(keyed)).toEqual([created(4n)]);
    });

    test("refuses a put that would add a plant, and none that replaces one", async () => {
      await apply(create({ id: 7n }), create(), create());
      expect(await apply(put({ id: 20n }), put({ id: 7n, name: "Ivy" }))).toEqual([
        full,
        { kind: "replaced" } as const,
      ]);
      expect(await kinds(put({ id: 20n, preconditions: { ifMatch: "*" } }))).toEqual([
        ...(["precondition-failed"] as const),
      ]);
      expect(await kinds(remove(7n), put({ id: 20n }), put({ id: 21n }))).toEqual([
        ...(["deleted", "created", "full"] as const),
      ]);
    });

    test("holds for a garden that had more before, until enough are gone", async () => {
      const before = await make({});
      await before.storage.apply(Array.from({ length: 6 }, () => create()));
      const limited = await before.openAgain({ plantsMax });
      for (const id of [1n, 2n, 3n]) {
        expect(await limited.apply([create(), remove(id)])).toEqual([full, { kind: "deleted" }]);
      }
      expect(await limited.apply([create(), remove(4n), create(), create()])).toEqual([
        full,
        { kind: "deleted" },
        created(7n),
        full,
      ] as Outcome[]);
      await limited.close();
      await before.remove();
    });

    test("bounds the keys of a garden, even if its plants are deleted", async () => {
      const keysMax = 10_000;
      const keyed = (key: string) => {
        const idempotency = { key: key.padEnd(255, "x"), nowMs: 0, expiresAtMs: 9 };
        return create({ id: 7n, idempotency });
      };
      await apply(keyed("k0"), remove(7n), keyed("k1"), remove(7n));
      await tested.execute(`UPDATE gardens SET keys = ${keysMax - 1}`);
      expect(await kinds(keyed("the last"), remove(7n))).toEqual(["created", "deleted"]);
      const noKey: Outcome = { kind: "full", limit: "keys", max: keysMax };
      expect(await apply(keyed("one more"), keyed("k0"), create())).toEqual([
        noKey,
        created(7n, true),
        created(8n),
      ]);
      expect(await kinds(keyed("one more"), create(), remove(8n))).toEqual([
        ...(["full", "created", "deleted"] as const),
      ]);
      while (await tested.storage.forgetKeys(9));
      expect(await kinds(keyed("one more"))).toEqual(["created"]);
    });

    describe("bounds the events of a garden,", () => {
      const eventsMax = 10_000;
      const change = (id: bigint) => [create({ id }), remove(id)];
      const seqs = async (garden = "home") =>
        (await tested.storage.readEvents(garden, 0, 10_000, 1e6)).events.map(({ seq }) => seq);

      /** None is too old. */
      async function forgetAll(): Promise<void> {
        let garden: string | undefined = "";
        while (garden !== undefined) garden = await tested.storage.forgetEvents(0, garden);
      }

      test("to as many as it says, and not one less", async () => {
        await apply(create(), create(), create({ garden: "other" }));
        await tested.execute(`UPDATE gardens SET last_event = ${eventsMax} WHERE garden = 'home'`);
        await forgetAll();
        expect(await seqs()).toEqual([1, 2]);
        await apply(create());
        await forgetAll();
        expect(await seqs()).toEqual([2, eventsMax + 1]);
        expect(await seqs("other")).toEqual([1]);
      });

      test("however many there are beyond it", async () => {
        await apply(...Array.from({ length: 1_100 }, () => change(7n)).flat());
        await tested.execute(`UPDATE gardens SET last_event = ${eventsMax + 2_150}`);
        await forgetAll();
        expect(await seqs()).toEqual(Array.from({ length: 50 }, (_, index) => 2_151 + index));
      });
    });
  });
}
