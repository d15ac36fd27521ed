/** The promises of src/domain/ports.ts as tests. Every engine runs them; none is named here. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { assignedIdMax, contentHash, plantIdMax, plantIdMin } from "../../src/domain/plant.ts";
import type { ListOptions, Outcome, Write } from "../../src/domain/ports.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { waitFor } from "../end-to-end/running-service.ts";
import { describeEvents } from "./events-contract.ts";
import { describeGardens } from "./gardens-contract.ts";
import { describeKeys } from "./keys-contract.ts";
import { describeQuota } from "./quota-contract.ts";
import {
  applyPatiently,
  create,
  created,
  put,
  remove,
  type StorageWish,
  type TestedStorage,
} from "./tested-storage.ts";
import { describeTokens } from "./tokens-contract.ts";

export function describeStorage(
  engine: string,
  make: (options?: StorageWish) => Promise<TestedStorage>,
): void {
  describe(`storage on ${engine}`, () => {
    let tested: TestedStorage;
    let storage: Storage;

    beforeEach(async () => {
      tested = await make();
      storage = tested.storage;
    });

    afterEach(() => tested.remove());

    async function apply(...writes: Write[]): Promise<readonly Outcome[]> {
      return applyPatiently(storage, writes);
    }

    async function ids(garden = "home"): Promise<bigint[]> {
      const plants = await storage.list(garden, undefined, 1_000);
      return plants.map(({ id }) => id);
    }

    describe("plants", () => {
      test("holds ids exactly over the whole 64-bit range and lists them in order", async () => {
        const given = [plantIdMax, 0n, 2n ** 53n + 1n, -1n, 2n ** 53n, plantIdMin, 1n];
        await apply(...given.map((id) => create({ id })));
        const sorted = [plantIdMin, -1n, 0n, 1n, 2n ** 53n, 2n ** 53n + 1n, plantIdMax];
        expect(await ids()).toEqual(sorted);
      });

      test("lists the plants with a tag, of its garden, in order and in pages", async () => {
        const tags = ["", "a", "b", "a", "A", "a", "a "];
        await apply(...tags.map((tag) => create({ tag })), create({ tag: "a", garden: "other" }));
        const tagged = async (tag: string, after?: bigint, count = 9, textMax?: number) =>
          (await storage.list("home", after, count, { tag, textMax })).map(({ id }) => id);
        expect(await tagged("a")).toEqual([2n, 4n, 6n]);
        expect(await tagged("a", 2n)).toEqual([4n, 6n]);
        expect(await tagged("a", 2n, 1)).toEqual([4n]);
        expect(await tagged("a", undefined, 9, 1)).toEqual([2n]);
        expect(await tagged("")).toEqual([1n]);
        expect(await tagged("c")).toEqual([]);
      });

      test("lists plants in descending order, of its garden or with a tag, in pages", async () => {
        const tags = ["a", "b", "a", "a"];
        await apply(
          ...tags.map((tag) => create({ tag })),
          ...[plantIdMin, plantIdMax].map((id) => create({ id, tag: "a " })),
          create({ tag: "a", garden: "other" }),
        );
        const listed = async (
          after: bigint | undefined,
          count: number,
          options: ListOptions = {},
        ) =>
          (await storage.list("home", after, count, { ...options, order: "desc" })).map(
            ({ id }) => id,
          );
        expect(await listed(undefined, 9)).toEqual([plantIdMax, 4n, 3n, 2n, 1n, plantIdMin]);
        expect(await listed(4n, 2)).toEqual([3n, 2n]);
        expect(await listed(4n, 9, { textMax: 10 })).toEqual([3n, 2n]);
        expect(await listed(plantIdMin, 9)).toEqual([]);
        expect(await listed(undefined, 9, { tag: "a" })).toEqual([4n, 3n, 1n]);
        expect(await listed(4n, 9, { tag: "a", textMax: 1 })).toEqual([3n]);
      });

      test("counts plants by tag in code point order, so many at a time", async () => {
        const tags = ["b", "", "a", "\u{1f33f}", "\uff21", "a", "B", "a"];
        await apply(
          ...tags.map((tag) => create({ tag })),
          create({ id: plantIdMin, tag: "" }),
          create({ tag: "a", garden: "other" }),
        );
        const counted = (tag: string, id: bigint, count: number) =>
          storage.countByTag("home", { tag, id }, count);
        const all = [
          { tag: "", plants: 2, lastId: 2n },
          { tag: "B", plants: 1, lastId: 7n },
          { tag: "a", plants: 3, lastId: 8n },
          { tag: "b", plants: 1, lastId: 1n },
          { tag: "\uff21", plants: 1, lastId: 5n },
          { tag: "\u{1f33f}", plants: 1, lastId: 4n },
        ];
        expect(await counted("", plantIdMin, 99)).toEqual(all);
        expect(await counted("a", plantIdMin, 2)).toEqual([{ tag: "a", plants: 2, lastId: 6n }]);
        expect(await counted("a", 7n, 2)).toEqual([
          { tag: "a", plants: 1, lastId: 8n },
          { tag: "b", plants: 1, lastId: 1n },
        ]);
        expect(await counted("a\u0001", plantIdMin, 99)).toEqual(all.slice(3));
        expect(await counted("\u{1f33f}", 5n, 9)).toEqual([]);
      });

      test("keeps gardens apart, even in a group of deletions only", async () => {
        const gardens = ["a", "A", "a b"];
        await apply(...gardens.map((garden) => create({ id: 7n, garden })));
        const outcomes = await apply(remove(7n, "b"), remove(7n, "a"), remove(7n, "a"));
        expect(outcomes.map(({ kind }) => kind)).toEqual(["missing", "deleted", "missing"]);
        expect(await Promise.all(gardens.map(ids))).toEqual([[], [7n], [7n]]);
        expect(await apply(create({ garden: "b" }), create({ garden: "A" }))).toEqual([
          created(1n),
          created(8n),
        ]);
      });
    });

    describe("the version", () => {
      test("changes with every change of the garden, by any process", async () => {
        const version = () => storage.version("home");
        const before = version();
        if (before === undefined) return;
        expect(version()).toEqual(before);
        await apply(create());
        const afterOwn = version();
        expect(afterOwn?.all).not.toBe(before.all);
        const other = await tested.openAgain();
        await other.apply([create()]);
        await other.close();
        await waitFor(() => (version()?.all === afterOwn?.all ? undefined : true));
      });

      test("ignores appends where asked to, but no other change", async () => {
        const withoutAppends = () => storage.version("home")?.withoutAppends;
        await apply(create());
        const before = withoutAppends();
        if (before === undefined) return;
        await apply(create(), create());
        expect(withoutAppends()).toBe(before);
        await apply(create({ id: 77n }));
        const afterGivenId = withoutAppends();
        expect(afterGivenId).not.toBe(before);
        await apply(put({ id: 77n, name: "other" }));
        const afterPut = withoutAppends();
        expect(afterPut).not.toBe(afterGivenId);
        await apply(remove(1n));
        expect(withoutAppends()).not.toBe(afterPut);
      });
    });

    describe("assigned ids", () => {
      test("start at 1 and go up by one, even after a deletion and a higher given id", async () => {
        expect(await apply(create(), create())).toEqual([created(1n), created(2n)]);
        await apply(remove(2n));
        expect(await apply(create())).toEqual([created(3n)]);
        await apply(create({ id: 41n }));
        expect(await apply(create())).toEqual([created(42n)]);
      });

      test("are not moved by given ids outside the counted range", async () => {
        const outside = [0n, -5n, plantIdMax, assignedIdMax + 1n];
        await apply(...outside.map((id) => create({ id })), put({ id: assignedIdMax + 2n }));
        expect(await apply(create())).toEqual([created(1n)]);
      });

      test("end at the highest, with ids above it in use or not", async () => {
        await apply(create({ id: assignedIdMax - 2n }), create({ id: assignedIdMax + 1n }));
        const exhausted: Outcome = { kind: "exhausted" };
        expect(await apply(create(), create(), create())).toEqual([
          created(assignedIdMax - 1n),
          created(assignedIdMax),
          exhausted,
        ]);
        expect(await apply(create(), create({ id: 5n }))).toEqual([exhausted, created(5n)]);
        await apply(remove(assignedIdMax));
        expect(await apply(create())).toEqual([exhausted]);
      });
    });

    describe("a put", () => {
      const failed: Outcome = { kind: "precondition-failed" };
      const replaced: Outcome = { kind: "replaced" };
      const plants = () => storage.list("home", undefined, 10);
      const hashOf = (name: string) => contentHash({ name, tag: "" });

      test("creates a plant, or replaces its name and tag", async () => {
        expect(await apply(put({ name: "Ivy" }))).toEqual([created(7n)]);
        expect(await apply(put({ name: "Fern", tag: "hall" }))).toEqual([replaced]);
        expect(await plants()).toEqual([{ id: 7n, name: "Fern", tag: "hall" }]);
        const tagged = await storage.list("home", undefined, 10, { tag: "hall" });
        expect(tagged).toEqual(await plants());
        expect(await storage.list("other", undefined, 10)).toEqual([]);
      });

      test("is decided in the order of its group, with creates and deletions", async () => {
        const outcomes = await apply(
          put({ name: "a" }),
          create({ id: 7n }),
          put({ name: "b" }),
          remove(7n),
          remove(7n),
          put({ name: "c" }),
          create(),
          put({ id: 8n, name: "d" }),
          put({ id: 9n }),
          remove(9n),
        );
        expect(outcomes.map(({ kind }) => kind)).toEqual([
          ...(["created", "taken", "replaced", "deleted", "missing"] as const),
          ...(["created", "created", "replaced", "created", "deleted"] as const),
        ]);
        expect((await plants()).map(({ id, name }) => [id, name])).toEqual([
          [7n, "c"],
          [8n, "d"],
        ]);
        expect(await storage.countPlants("home")).toBe(2);
        expect(await apply(create())).toEqual([created(10n)]);
      });

      test("happens only if the plant is as expected", async () => {
        const ifMatch = (names: string[]) => ({ preconditions: { ifMatch: names.map(hashOf) } });
        await apply(put({ name: "a" }));
        expect(await apply(put({ name: "b", ...ifMatch(["x"]) }))).toEqual([failed]);
        expect(await apply(put({ name: "b", ...ifMatch([]) }))).toEqual([failed]);
        expect(await apply(put({ name: "b", ...ifMatch(["x", "a"]) }))).toEqual([replaced]);
        expect(await apply(put({ name: "c", ...ifMatch(["a"]) }))).toEqual([failed]);
        expect(await apply(put({ id: 8n, ...ifMatch(["Fern"]) }))).toEqual([failed]);
        expect(await plants()).toEqual([{ id: 7n, name: "b", tag: "" }]);
      });

      test("happens only if the plant is there, or only if it isn't", async () => {
        const there = { preconditions: { ifMatch: "*" } } as const;
        const absent = { preconditions: { ifNoneMatch: "*" } } as const;
        const both = { preconditions: { ifMatch: "*", ifNoneMatch: "*" } } as const;
        expect(await apply(put(there), put(absent), put(absent), put(there), put(both))).toEqual([
          failed,
          created(7n),
          failed,
          replaced,
          failed,
        ]);
      });

      test("of several with the same precondition succeeds once, in a group and at once", async () => {
        await apply(put({ name: "a" }));
        const rename = (name: string) => put({ name, preconditions: { ifMatch: [hashOf("a")] } });
        expect(await apply(rename("b"), rename("c"))).toEqual([replaced, failed]);
        await apply(put({ name: "a" }));
        const names = Array.from({ length: 20 }, (_, index) => `name ${index}`);
        const outcomes = await Promise.all(names.map((name) => apply(rename(name))));
        expect(outcomes.flat().filter(({ kind }) => kind === "replaced")).toHaveLength(1);
        const winner = outcomes.findIndex(([outcome]) => outcome?.kind === "replaced");
        expect((await plants())[0]?.name).toBe(`name ${winner}`);
      });
    });

    test("a delete happens only if the plant is as expected", async () => {
      const failed: Outcome = { kind: "precondition-failed" };
      const missing: Outcome = { kind: "missing" };
      await apply(create({ id: 7n }));
      const expecting = (ifMatch: "*" | string[], id = 7n) => ({
        ...remove(id),
        preconditions: { ifMatch },
      });
      const hash = contentHash({ name: "Fern", tag: "" });
      expect(await apply(expecting(["x"]), expecting("*", 8n), expecting([hash], 8n))).toEqual([
        failed,
        missing,
        missing,
      ]);
      expect(await apply(expecting(["x", hash]), expecting("*"))).toEqual([
        { kind: "deleted" } as const,
        missing,
      ]);
    });

    describe("the count of plants", () => {
      test("is exact after writes of every kind, in every garden", async () => {
        expect(await storage.countPlants("home")).toBe(0);
        const keyed = create({ idempotency: { key: "k", nowMs: 0, expiresAtMs: 9 } });
        await apply(create(), keyed, keyed, create({ id: 1n }), create({ garden: "other" }));
        expect(await storage.countPlants("home")).toBe(2);
        await apply(create(), create());
        await apply(put(), put(), remove(7n), remove(7n), remove(1n), put({ id: -3n }));
        expect(await storage.countPlants("home")).toBe(4);
        expect(await storage.countPlants("other")).toBe(1);
        expect(await ids()).toHaveLength(4);
      });

      test("is as before when a group fails", async () => {
        await apply(create());
        const broken = create({ name: null as unknown as string });
        expect(await apply(create(), broken).catch((error) => error)).toBeInstanceOf(Error);
        expect(await apply(put(), broken).catch((error) => error)).toBeInstanceOf(Error);
        expect(await storage.countPlants("home")).toBe(1);
      });
    });

    test("a list starts at the first plant, or after an id that need not exist", async () => {
      await apply(...[plantIdMin, 2n, 3n, 5n].map((id) => create({ id })));
      const listed = async (after: bigint | undefined, count: number) =>
        (await storage.list("home", after, count)).map(({ id }) => id);
      expect(await listed(undefined, 2)).toEqual([plantIdMin, 2n]);
      expect(await listed(plantIdMin, 1)).toEqual([2n]);
      expect(await listed(4n, 10)).toEqual([5n]);
    });

    describeKeys(() => tested);
    describeGardens(() => tested);
    describeEvents(() => tested);
    describeTokens(() => tested);
  });

  describeQuota(engine, make);
}
