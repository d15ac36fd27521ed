/** What storage promises of events. */
import { describe, expect, test } from "bun:test";
import type { Write } from "../../src/domain/ports.ts";
import { applyPatiently, create, put, remove, type TestedStorage } from "./tested-storage.ts";

export function describeEvents(tested: () => TestedStorage): void {
  describe("events", () => {
    const apply = (...writes: Write[]) => applyPatiently(tested().storage, writes);
    const read = (garden = "home", after?: number, count = 1_000, textMax = 1_000_000) =>
      tested().storage.readEvents(garden, after, count, textMax);
    const seqs = async (garden?: string, after?: number) =>
      (await read(garden, after)).events.map(({ seq }) => seq);

    test("hold every change with its plant, user and time, in the order of the writes", async () => {
      await apply(create({ name: "a", tag: "b" }), create({ id: 7n, user: "bob", atMs: 5 }));
      await apply(put({ name: "c" }), remove(1n), remove(7n), put({ id: 1n }));
      await apply(remove(1n));
      const event = { user: "ada", atMs: 0, name: "Fern", tag: "" };
      const { events, lastEvent } = await read();
      expect(events).toEqual([
        { ...event, seq: 1, type: "created", id: 1n, name: "a", tag: "b" },
        { ...event, seq: 2, type: "created", id: 7n, user: "bob", atMs: 5 },
        { ...event, seq: 3, type: "replaced", id: 7n, name: "c" },
        { ...event, seq: 4, type: "deleted", id: 1n, name: "a", tag: "b" },
        { ...event, seq: 5, type: "deleted", id: 7n, name: "c" },
        { ...event, seq: 6, type: "created", id: 1n },
        { ...event, seq: 7, type: "deleted", id: 1n },
      ]);
      expect(lastEvent).toBe(7);
    });

    test("hold nothing that changes nothing", async () => {
      const keyed = create({ idempotency: { key: "k", nowMs: 0, expiresAtMs: 9 } });
      await apply(keyed);
      await apply(keyed, create({ id: 1n }), remove(8n), put({ id: 1n }));
      await apply(put({ id: 1n }));
      await apply(put({ id: 1n, name: "x", preconditions: { ifNoneMatch: "*" } }));
      await apply(remove(8n), remove(9n));
      expect(await read()).toMatchObject({ events: [{ seq: 1 }], lastEvent: 1 });
    });

    test("are counted in each garden, and read from a number on", async () => {
      await apply(create(), create({ garden: "other" }), create(), create());
      expect(await seqs("other")).toEqual([1]);
      expect(await seqs("home", 1)).toEqual([2, 3]);
      expect(await read("home", 3)).toEqual({ events: [], lastEvent: 3 });
      expect(await read("none")).toEqual({ events: [], lastEvent: 0 });
    });

    test("are read up to a number of them, or of characters, but at least one", async () => {
      await apply(create({ name: "a".repeat(9) }), create({ name: "b" }), create({ name: "c" }));
      expect((await read("home", 0, 2)).events).toHaveLength(2);
      expect((await read("home", 0, 9, 10)).events).toHaveLength(2);
      expect((await read("home", 0, 9, 1)).events).toHaveLength(1);
    });

    test("are found new in the gardens whose last event is another one", async () => {
      await apply(create(), create({ garden: "b" }), create({ garden: "c" }));
      const known = { home: 0, b: 1, c: 2, d: 0 };
      const found = await tested().storage.findNewEvents(new Map(Object.entries(known)));
      expect(Object.fromEntries(found)).toEqual({ home: 1, c: 1 });
    });

    test("of a group that fails aren't stored", async () => {
      const broken = create({ name: null as unknown as string });
      await apply(create(), broken).catch(() => {});
      await apply(put(), broken).catch(() => {});
      expect(await read()).toEqual({ events: [], lastEvent: 0 });
    });

    test("are forgotten once they're old, the oldest of each garden only", async () => {
      const times = [1, 2, 9, 3];
      await apply(
        ...["home", "other"].flatMap((garden) => times.map((atMs) => create({ garden, atMs }))),
      );
      await forget(3);
      expect([await seqs(), await seqs("other")]).toEqual([
        [3, 4],
        [3, 4],
      ]);
      await forget(10);
      expect([await seqs(), (await read()).lastEvent]).toEqual([[], 4]);
      await apply(create());
      expect(await seqs()).toEqual([5]);
    });

    test("are forgotten however many there are, in however many gardens", async () => {
      const gardens = Array.from({ length: 600 }, (_, index) => create({ garden: `g${index}` }));
      await apply(...gardens, ...Array.from({ length: 2_100 }, () => create({ garden: "g7" })));
      await forget(1);
      expect([await seqs("g7"), await seqs("g599")]).toEqual([[], []]);
    });

    async function forget(beforeMs: number): Promise<void> {
      let garden: string | undefined = "";
      while (garden !== undefined) garden = await tested().storage.forgetEvents(beforeMs, garden);
    }

    test("aren't stored without them, but still counted", async () => {
      const without = await tested().openAgain({ withoutEvents: true });
      await without.apply([create(), create()]);
      await without.apply([create({ id: 9n }), remove(1n)]);
      await without.apply([remove(2n)]);
      await without.close();
      expect(await read()).toEqual({ events: [], lastEvent: 5 });
      await apply(create());
      expect(await seqs()).toEqual([6]);
    });
  });
}
