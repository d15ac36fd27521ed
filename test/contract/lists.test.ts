/** Lists, searches and tags: what they find, in which order, how pages go on. */
import { describe, expect, spyOn, test } from "bun:test";
import { remove } from "../../testing/tested-storage.ts";
import { onEachEngine } from "./garden.ts";

const leaf = "\u{1f33f}";
const far = 2n ** 53n + 1n;
const [lowest, highest] = [-(2n ** 63n), 2n ** 63n - 1n];
const named = (...names: string[]) => names.map((name) => ({ name, tag: "" }));
const count = (tag: string, plants: number) => ({ tag, plants });

onEachEngine((garden) => {
  const { call, stranger, list, walk, grow, plant, service } = garden;
  const grown = (...tags: readonly string[]) =>
    plant(tags.map((tag, index) => ({ id: BigInt(index + 1), name: `Plant ${index + 1}`, tag })));
  const tags = async (query = "") => (await call(`GET /tags?${query}`, 200)).json;
  /** The names that each query lists. */
  const expectLists = async (expected: Readonly<Record<string, unknown[]>>) => {
    for (const [query, names] of Object.entries(expected)) {
      expect([query, await list(query)]).toEqual([query, names.map(String)]);
    }
  };

  describe("a list", () => {
    test("is a JSON array of name and tag by ascending id, with include=id of the id, too", async () => {
      await plant([far, 3n, -1n].map((id) => ({ id, name: `Plant ${id}` })));
      expect((await call("GET /plants", 200)).text).toBe(
        `[{"name":"Plant -1","tag":""},{"name":"Plant 3","tag":""},{"name":"Plant ${far}","tag":""}]`,
      );
      expect((await call("GET /plants?include=id&after=-1", 200)).text).toBe(
        `[{"id":3,"name":"Plant 3","tag":""},{"id":${far},"name":"Plant ${far}","tag":""}]`,
      );
    });

    test("is cut by limit, with a Link that keeps include=id, and without one at its end", async () => {
      await grow("a", "b", "c", "d", "e");
      const plants = ["a", "b", "c", "d", "e"].map((name, at) => ({ id: at + 1, name, tag: "" }));
      const pages = await walk("/plants?limit=2&include=id");
      expect(pages).toEqual([plants.slice(0, 2), plants.slice(2, 4), plants.slice(4)]);
      expect((await walk("/plants?limit=0")).slice(0, 3)).toEqual([[], named("a"), named("b")]);
      const next = async (query: string, method = "GET") =>
        (await call(`${method} /plants?${query}`, 200)).next;
      expect(await next("limit=4")).toBe("/plants?limit=4&after=4");
      expect(await next("limit=2", "HEAD")).toBe("/plants?limit=2&after=2");
      for (const query of ["", "limit=5", "limit=1000", "limit=2147483647", "after=5&limit=0"]) {
        expect([query, await next(query)]).toEqual([query, undefined]);
      }
    });

    test("starts after an id, which is exact beyond 2^53, and descends below it with order=desc", async () => {
      await plant([far + 1n, far, 1n, 2n, 3n].map((id) => ({ id, name: `${id}` })));
      await expectLists({
        ...{ "after=1&limit=1": [2], [`after=${far}`]: [far + 1n], [`after=${far + 1n}`]: [] },
        ...{ [`after=${lowest}`]: [1, 2, 3, far, far + 1n], [`after=${highest}`]: [] },
        ...{ "order=asc&limit=2": [1, 2], "order=desc&after=3": [2, 1] },
        [`order=desc&after=${lowest}`]: [],
        [`order=desc&after=${highest}&limit=1`]: [far + 1n],
      });
      const pages = [named(`${far + 1n}`, `${far}`), named("3", "2"), named("1")];
      expect(await walk("/plants?order=desc&limit=2")).toEqual(pages);
    });

    test("shows nothing to another garden, however often it was asked for before", async () => {
      // Caches can't tell them by the number of changes.
      await call("POST /plants", 201, { name: "ours", id: 1 });
      await stranger("POST /plants", 201, { name: "theirs", id: 1 });
      for (let time = 0; time < 3; time++) await expectLists({ "": ["ours"] });
      expect((await stranger("GET /plants", 200)).json).toEqual(named("theirs"));
    });

    test("shows every change, however often it was asked for before", async () => {
      const ask = async (query: string) => {
        for (let time = 0; time < 3; time++) await list(query);
        return list(query);
      };
      const expectPages = async (first: string[], last: string[]) => {
        expect(await ask("limit=1&order=desc")).toEqual(last.slice(-1));
        expect(await ask("limit=1&q=1")).toEqual(first.slice(0, 1));
        expect(await ask("limit=2")).toEqual(first);
        expect(await ask("limit=9&after=2")).toEqual(last);
        const all = [...new Set([...first, ...last])];
        expect(await ask("")).toEqual(all);
        expect(await tags()).toEqual([count("", all.length)]);
      };
      await plant(["1", "12", "13"].map((name) => ({ id: BigInt(name), name })));
      await expectPages(["1", "12"], ["12", "13"]);
      await plant([{ id: -1n, name: "-1" }]);
      await expectPages(["-1", "1"], ["12", "13"]);
      // Its id is assigned, so pages before it stay cached.
      await plant([{ name: "14" }]);
      await expectPages(["-1", "1"], ["12", "13", "14"]);
      const { next } = await call("GET /plants?limit=2", 200);
      await service.storage.apply([remove(1n, garden.name)]);
      await expectPages(["-1", "12"], ["12", "13", "14"]);
      expect(await walk(next ?? "")).toEqual([named("12", "13"), named("14")]);
    });

    test("that a write overtakes is not shown again", async () => {
      await grow("Fern");
      const ask = () => list("limit=9");
      for (let time = 0; time < 2; time++) await ask();
      await plant([{ name: "Ivy" }]);
      const read = service.storage.list.bind(service.storage);
      {
        using _ = spyOn(service.storage, "list").mockImplementation(async (...asked) => {
          const found = await read(...asked);
          await plant([{ name: "Moss" }]);
          return found;
        });
        expect(await ask()).toEqual(["Fern", "Ivy"]);
      }
      expect(await ask()).toEqual(["Fern", "Ivy", "Moss"]);
    });

    test("whose last id is above all assigned ones shows plants that are put before it", async () => {
      await plant([0n, highest - 1n, highest].map((id) => ({ id, name: `${id}` })));
      for (let time = 0; time < 3; time++) await expectLists({ "limit=2": [0, highest - 1n] });
      await plant([{ name: "new" }]);
      await expectLists({ "limit=2": [0, "new"] });
    });
  });

  describe("tag", () => {
    test("lists plants with exactly this tag, whatever it is, and an empty one those without", async () => {
      const odd = ["a b&c=d", "100%", "a+b", "\u00e9", "e\u0301", leaf.repeat(100), "\ufffd"];
      const single = ["Shade", "shade ", "", ...odd];
      await grown(...single, "shade", "shade");
      const last = single.length + 2;
      await expectLists({ "tag=shade": [`Plant ${last - 1}`, `Plant ${last}`], "tag=shad": [] });
      for (const [index, tag] of single.entries()) {
        await expectLists({ [`tag=${encodeURIComponent(tag)}`]: [`Plant ${index + 1}`] });
      }
    });

    test("goes with limit, after, order, include and q, and Link keeps them all", async () => {
      await grown("a&b", "a&b", "x", "x", "a&b");
      const page = (id: number) => [{ id, name: `Plant ${id}`, tag: "a&b" }];
      const query = "/plants?tag=a%26b&limit=1&include=id";
      expect(await walk(query)).toEqual([page(1), page(2), page(5)]);
      for (const more of ["", "&q=plant+PLA"]) {
        expect(await walk(`${query}&order=desc&after=5${more}`)).toEqual([page(2), page(1)]);
      }
    });
  });

  describe("q", () => {
    test("finds plants that have each word in the name or tag, in any order", async () => {
      await plant([
        { name: "Monstera deliciosa" },
        { name: "Fern", tag: "monster" },
        { name: "Royal fern", tag: "pond" },
      ]);
      await expectLists({
        ...{ "q=onster": ["Monstera deliciosa", "Fern"], "q=monstera": ["Monstera deliciosa"] },
        ...{ "q=fern+royal": ["Royal fern"], "q=+pond%E3%80%80FERN%09": ["Royal fern"] },
        ...{ "q=roy+fer+on": ["Royal fern"], "q=royal+ivy": [], "q=fernpond": [] },
      });
      const found = [[], named("Monstera deliciosa"), [{ name: "Fern", tag: "monster" }]];
      expect(await walk("/plants?q=monst&limit=0")).toEqual(found);
    });

    test("pays no attention to case and accents, and no character is special", async () => {
      const found = {
        ...{ "creme BRULEE": "CRÈME Brûlée", "bru\u0302lée": "CRÈME Brûlée" },
        ...{ istan: "\u0130stanbul", οδοσ: "ΟΔΟΣ", fig: "\ufb01g", "[A].*": "100% [a].*" },
        ...{ "%": "100% [a].*", _: "a_b", [leaf]: `${leaf} leaf`, "e\u00b4f": "e\u00b4f" },
      };
      const names = [...new Set(Object.values(found)), "café", "e x f"];
      await plant(names.map((name) => ({ name })));
      for (const [words, name] of Object.entries(found)) {
        await expectLists({ [`q=${encodeURIComponent(words)}`]: [name] });
      }
    });

    test("passes over words of accents only, beside others", async () => {
      await grow("Fern", "\u0301 \u00b4 a\u0301");
      await expectLists({
        ...{ "q=fern+%C2%B4": ["Fern"], "q=%CC%81+fern+%C2%A8": ["Fern"] },
        [`q=${encodeURIComponent("\u0301 \u00b4 a\u0301")}`]: ["\u0301 \u00b4 a\u0301"],
      });
    });
  });

  describe("tags", () => {
    test("are counted in code point order, and plants without one under the empty tag", async () => {
      expect(await tags()).toEqual([]);
      await grown("b", "", "a", leaf, "\uff21", "a", "B");
      expect(await tags()).toEqual([
        ...[count("", 1), count("B", 1), count("a", 2), count("b", 1), count("\uff21", 1)],
        count(leaf, 1),
      ]);
      expect((await call("HEAD /tags?limit=1", 200)).next).toBe("/tags?limit=1&after=");
    });

    test("are cut by limit, with links to the others, which start after any tag", async () => {
      await grown("", "a&b", "a&b", "c");
      const all = [count("", 1), count("a&b", 2), count("c", 1)];
      expect(await walk("/tags?limit=0")).toEqual([[], ...all.map((each) => [each])]);
      expect(await walk("/tags?limit=3")).toEqual([all]);
      for (const [index, after] of ["", "b", "c"].entries()) {
        expect(await tags(`after=${after}`)).toEqual(all.slice(index + 1));
      }
    });
  });
});
