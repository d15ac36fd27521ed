/** What storage promises of gardens as a whole. */
import { describe, expect, test } from "bun:test";
import { waitFor } from "../end-to-end/running-service.ts";
import { applyPatiently, create, created, remove, type TestedStorage } from "./tested-storage.ts";

export function describeGardens(tested: () => TestedStorage): void {
  describe("gardens", () => {
    const apply = (...writes: Parameters<typeof applyPatiently>[1]) =>
      applyPatiently(tested().storage, writes);
    const list = () => tested().storage.listGardens();

    test("are listed by name, with their plants and last event", async () => {
      expect(await list()).toEqual([]);
      await apply(create({ garden: "b", atMs: 5 }), create({ garden: "b", atMs: 6 }));
      await apply(remove(1n, "b"), create({ garden: "a", atMs: 7 }));
      await tested().execute("DELETE FROM events WHERE garden = 'b'");
      expect(await list()).toEqual([
        { garden: "a", plants: 1, lastEvent: 1, lastEventAtMs: 7 },
        { garden: "b", plants: 1, lastEvent: 3, lastEventAtMs: undefined },
      ]);
    });

    test("are deleted with all that is in them, and nothing else is", async () => {
      const { storage } = tested();
      const idempotency = { key: "k", nowMs: 0, expiresAtMs: 9 };
      // More than fit in one transaction.
      const many = Array.from({ length: 1_001 }, () => create());
      await apply(create({ idempotency }), create({ garden: "other", idempotency }), ...many);
      expect(await storage.deleteGarden("home")).toBe(true);
      expect(await storage.deleteGarden("home")).toBe(false);
      expect(await list()).toMatchObject([{ garden: "other", plants: 1, lastEvent: 1 }]);
      expect(await storage.list("home", undefined, 9)).toEqual([]);
      expect(await storage.readEvents("home", undefined, 9, 99)).toEqual({
        events: [],
        lastEvent: 0,
      });
      expect([...(await storage.findNewEvents(new Map([["home", 1_002]])))]).toEqual([["home", 0]]);
      const [again, replayed] = await apply(
        create({ idempotency }),
        create({ garden: "other", idempotency }),
      );
      expect([again, replayed]).toEqual([created(1n), created(1n, true)]);
    });

    test("that are deleted while somebody writes to them keep exact counts", async () => {
      const { storage } = tested();
      const other = await tested().openAgain();
      try {
        const writing = async () => {
          for (let round = 0; round < 30; round++) {
            await apply(create(), create({ id: BigInt(round + 1_000) }), remove(1n));
          }
        };
        const deleting = async () => {
          for (let round = 0; round < 30; round++) await other.deleteGarden("home");
        };
        await Promise.all([writing(), deleting()]);
        const plants = await storage.list("home", undefined, 1_000);
        expect(await storage.countPlants("home")).toBe(plants.length);
        const { events, lastEvent } = await storage.readEvents("home", undefined, 1_000, 1e6);
        expect(events.every(({ seq }) => seq <= lastEvent)).toBe(true);
      } finally {
        await other.close();
      }
    });

    test("that another process deletes change their version", async () => {
      const { storage } = tested();
      await apply(create());
      const before = storage.version("home");
      const other = await tested().openAgain();
      await other.deleteGarden("home");
      await other.close();
      if (before) await waitFor(() => storage.version("home")?.all !== before.all || undefined);
      expect(await storage.countPlants("home")).toBe(0);
    });
  });
}
