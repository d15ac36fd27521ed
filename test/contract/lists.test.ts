/** Lists, searches and tags: what they find, in which order, how pages go on. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

const leaf = "\u{1f33f}";
const far = 2n ** 53n + 1n;
const [lowest, highest] = [-(2n ** 63n), 2n ** 63n - 1n];
const named = (...names: string[]) => names.map((name) => ({ name, tag: "" }));
const count = (tag: string, plants: number) => ({ tag, plants });

onEachEngine(({ call, list, walk, grow, plant }) => {
  const grown = (...tags: readonly string[]) =>
    plant(tags.map((tag, index) => ({ id: BigInt(index + 1), name: `Plant ${index + 1}`, tag })));
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
        ...{ "order=desc": [far + 1n, far, 3, 2, 1], "order=asc&limit=2": [1, 2] },
        ...{ "order=desc&after=3": [2, 1], [`order=desc&after=${lowest}`]: [] },
        [`order=desc&after=${highest}&limit=1`]: [far + 1n],
      });
      const pages = [named(`${far + 1n}`, `${far}`), named("3", "2"), named("1")];
      expect(await walk("/plants?order=desc&limit=2")).toEqual(pages);
    });

    test("shows creates and deletes at once, and its links miss nothing meanwhile", async () => {
      await grow("a", "b", "c");
      const { next } = await call("GET /plants?limit=1", 200);
      for (let time = 0; time < 4; time++) await expectLists({ "limit=9": ["a", "b", "c"] });
      await call("DELETE /plants/1", 204);
      for (let time = 0; time < 4; time++) await expectLists({ "limit=9": ["b", "c"] });
      expect((await call(`GET ${next}`, 200)).json).toEqual(named("b"));
      await call("POST /plants", 201, { name: "d" });
      await expectLists({ "limit=9": ["b", "c", "d"] });
    });
  });

  describe("tag", () => {
    test("lists plants with exactly this tag, and an empty one those without", async () => {
      await grown("shade", "Shade", "shade", "shade ", "");
      await expectLists({
        ...{ "tag=shade": ["Plant 1", "Plant 3"], "tag=shade%20": ["Plant 4"] },
        ...{ "tag=shad": [], "tag=": ["Plant 5"] },
      });
    });

    test("may be any that a plant may have", async () => {
      const tags = ["a b&c=d", "100%", "a+b", "\u00e9", "e\u0301", leaf.repeat(100), "\ufffd"];
      await grown(...tags);
      for (const [index, tag] of tags.entries()) {
        await expectLists({ [`tag=${encodeURIComponent(tag)}`]: [`Plant ${index + 1}`] });
      }
    });

    test("goes with limit, after, order, include and q, and Link keeps them all", async () => {
      await grown("a&b", "x", "a&b", "x", "a&b");
      const page = (id: number) => [{ id, name: `Plant ${id}`, tag: "a&b" }];
      const query = "/plants?tag=a%26b&limit=1&include=id";
      expect(await walk(query)).toEqual([page(1), page(3), page(5)]);
      for (const more of ["", "&q=plant+PLA"]) {
        expect(await walk(`${query}&order=desc&after=5${more}`)).toEqual([page(3), page(1)]);
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
        ...{ "q=roy+fer+on": ["Royal fern"], "q=ferns": [], "q=royal+ivy": [], "q=fernpond": [] },
      });
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

    test("leads to every match by its links, with a limit of 0, too", async () => {
      await grow("fern a", "ivy", "fern b", "ivy");
      expect(await walk("/plants?q=fern&limit=0")).toEqual([[], named("fern a"), named("fern b")]);
    });
  });

  describe("tags", () => {
    const tags = async (query = "") => (await call(`GET /tags?${query}`, 200)).json;

    test("are counted in code point order, and plants without one under the empty tag", async () => {
      expect(await tags()).toEqual([]);
      await grown("b", "", "a", leaf, "\uff21", "a", "B");
      expect(await tags()).toEqual([
        ...[count("", 1), count("B", 1), count("a", 2), count("b", 1), count("\uff21", 1)],
        count(leaf, 1),
      ]);
      expect((await call("HEAD /tags?limit=1", 200)).next).toBe("/tags?limit=1&after=");
    });

    test("are cut by limit, and the links lead to every one", async () => {
      await grown("", "a&b", "a&b", "c");
      const all = [[count("", 1)], [count("a&b", 2)], [count("c", 1)]];
      expect(await walk("/tags?limit=0")).toEqual([[], ...all]);
      expect(await walk("/tags?limit=3")).toEqual([all.flat()]);
    });

    test("start after a tag that need not exist, and may be empty", async () => {
      await grown("", "a", "aa", "b");
      expect(await tags("after=")).toEqual([count("a", 1), count("aa", 1), count("b", 1)]);
      expect(await tags("after=a")).toEqual([count("aa", 1), count("b", 1)]);
      expect([await tags("after=ab"), await tags("after=c")]).toEqual([[count("b", 1)], []]);
    });

    test("show every change at once", async () => {
      await grown("a");
      expect([await tags(), await tags()]).toEqual([[count("a", 1)], [count("a", 1)]]);
      await call("POST /plants", 201, { name: "Fern", tag: "a" });
      expect(await tags()).toEqual([count("a", 2)]);
      await call("PUT /plants/1", 200, { name: "Fern", tag: "b" });
      expect(await tags()).toEqual([count("a", 1), count("b", 1)]);
      await call("DELETE /plants/2", 204);
      expect(await tags()).toEqual([count("b", 1)]);
    });
  });
});
