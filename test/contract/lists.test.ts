/** Lists, searches and tags: what they find, in which order, how pages go on. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

const leaf = "\u{1f33f}";
const far = 2n ** 53n + 1n;
const named = (...names: string[]) => names.map((name) => ({ name, tag: "" }));
const count = (tag: string, plants: number) => ({ tag, plants });

onEachEngine(({ call, list, walk, grow, plant }) => {
  const grown = (tags: readonly string[]) =>
    plant(tags.map((tag, index) => ({ id: BigInt(index + 1), name: `Plant ${index + 1}`, tag })));

  describe("a list", () => {
    test("is a JSON array of name and tag by ascending id, with include=id of the id, too", async () => {
      await plant([far, 3n, -1n, 10n].map((id) => ({ id, name: `Plant ${id}` })));
      const { text, headers } = await call("GET /plants", 200);
      expect(text).toBe(
        `[{"name":"Plant -1","tag":""},{"name":"Plant 3","tag":""},` +
          `{"name":"Plant 10","tag":""},{"name":"Plant ${far}","tag":""}]`,
      );
      expect(headers.get("Content-Type")).toBe("application/json");
      const { json } = await call("GET /plants?include=id&after=3", 200);
      expect(json.map(({ id }: { id: unknown }) => id)).toEqual([10, far]);
      expect(Object.keys(json[0])).toEqual(["id", "name", "tag"]);
    });

    test("is cut by limit, with a Link that keeps include=id, and without one at its end", async () => {
      await grow("a", "b", "c", "d", "e");
      const plants = ["a", "b", "c", "d", "e"].map((name, at) => ({ id: at + 1, name, tag: "" }));
      const pages = await walk("/plants?limit=2&include=id");
      expect(pages).toEqual([plants.slice(0, 2), plants.slice(2, 4), plants.slice(4)]);
      const next = async (query: string) => (await call(`GET /plants?${query}`, 200)).next;
      expect(await next("limit=4")).toBe("/plants?limit=4&after=4");
      for (const query of ["", "limit=5", "limit=1000", "limit=2147483647", "after=5&limit=0"]) {
        expect([query, await next(query)]).toEqual([query, undefined]);
      }
      const head = await call("HEAD /plants?limit=2", 200);
      expect([head.next, head.header("Content-Type")]).toEqual([
        ...["/plants?limit=2&after=2", "application/json"],
      ]);
    });

    test("with limit=0 is empty, and its Link leads to every plant", async () => {
      await grow("a", "b");
      expect(await walk("/plants?limit=0")).toEqual([[], named("a"), named("b")]);
    });

    test("starts after the id that after names, which is exact beyond 2^53", async () => {
      await plant([1n, 2n, far, far + 1n].map((id) => ({ id, name: `${id}` })));
      expect(await list("after=1&limit=1")).toEqual(["2"]);
      expect(await list(`after=${far}`)).toEqual([`${far + 1n}`]);
      expect(await list(`after=${far + 1n}`)).toEqual([]);
      expect(await list("after=-9223372036854775808")).toHaveLength(4);
      expect(await list("after=9223372036854775807")).toEqual([]);
    });

    test("shows creates and deletes at once, and its links miss nothing meanwhile", async () => {
      await grow("a", "b", "c");
      const { next } = await call("GET /plants?limit=1", 200);
      for (let time = 0; time < 4; time++) expect(await list("limit=9")).toEqual(["a", "b", "c"]);
      await call("DELETE /plants/1", 204);
      for (let time = 0; time < 4; time++) expect(await list("limit=9")).toEqual(["b", "c"]);
      expect((await call(`GET ${next}`, 200)).json).toEqual(named("b"));
      await call("POST /plants", 201, { name: "d" });
      expect(await list("limit=9")).toEqual(["b", "c", "d"]);
    });
  });

  describe("tag", () => {
    test("lists plants with exactly this tag, and an empty one those without", async () => {
      await grown(["shade", "Shade", "shade", "shade ", ""]);
      expect(await list("tag=shade")).toEqual(["Plant 1", "Plant 3"]);
      expect(await list("tag=shade%20")).toEqual(["Plant 4"]);
      expect([await list("tag=shad"), await list("tag=")]).toEqual([[], ["Plant 5"]]);
    });

    test("may be any that a plant may have", async () => {
      const tags = ["a b&c=d", "100%", "a+b", "\u00e9", "e\u0301", leaf.repeat(100), "\ufffd"];
      await grown(tags);
      for (const [index, tag] of tags.entries()) {
        expect(await list(`tag=${encodeURIComponent(tag)}`)).toEqual([`Plant ${index + 1}`]);
      }
    });

    test("goes with limit, after, order and include, and Link keeps it", async () => {
      await grown(["a&b", "x", "a&b", "x", "a&b"]);
      const page = (id: number) => [{ id, name: `Plant ${id}`, tag: "a&b" }];
      const query = "/plants?tag=a%26b&limit=1&include=id";
      expect(await walk(query)).toEqual([page(1), page(3), page(5)]);
      expect(await walk(`${query}&order=desc&after=5`)).toEqual([page(3), page(1)]);
    });
  });

  describe("order=desc", () => {
    test("lists by descending id, and after goes on below an id", async () => {
      await plant([far, 1n, 2n, 3n].map((id) => ({ id, name: `${id}` })));
      expect(await list("order=desc")).toEqual([`${far}`, "3", "2", "1"]);
      expect(await list("order=asc&limit=2")).toEqual(["1", "2"]);
      expect(await list("order=desc&after=3")).toEqual(["2", "1"]);
      expect(await list("order=desc&after=9223372036854775807&limit=1")).toEqual([`${far}`]);
      expect(await list("order=desc&after=-9223372036854775808")).toEqual([]);
      const pages = [[...named(`${far}`, "3")], named("2", "1")];
      expect(await walk("/plants?order=desc&limit=2")).toEqual(pages);
    });
  });

  describe("q", () => {
    const search = (words: string) => list(`q=${encodeURIComponent(words)}`);

    test("finds plants that have each word in the name or tag, in any order", async () => {
      await plant([
        { name: "Monstera deliciosa" },
        { name: "Fern", tag: "monster" },
        { name: "Royal fern", tag: "pond" },
      ]);
      expect(await search("onster")).toEqual(["Monstera deliciosa", "Fern"]);
      expect(await search("monstera")).toEqual(["Monstera deliciosa"]);
      for (const words of ["fern royal", " pond\u3000FERN\t", "roy fer on"]) {
        expect(await search(words)).toEqual(["Royal fern"]);
      }
      for (const words of ["ferns", "royal ivy", "fernpond"])
        expect(await search(words)).toEqual([]);
    });

    test.each([
      ["creme BRULEE", "CRÈME Brûlée"],
      ["bru\u0302lée", "CRÈME Brûlée"],
      ["istan", "\u0130stanbul"],
      ["οδοσ", "ΟΔΟΣ"],
      ["fig", "\ufb01g"],
      ["[A].*", "100% [a].*"],
      ["%", "100% [a].*"],
      ["_", "a_b"],
      [leaf, `${leaf} leaf`],
      ["e\u00b4f", "e\u00b4f"],
    ])(
      "%p finds %p only: case and accents don't matter, and no character is special",
      async (words, name) => {
        const names = ["CRÈME Brûlée", "\u0130stanbul", "ΟΔΟΣ", "\ufb01g", "100% [a].*", "a_b"];
        await plant(
          [...names, `${leaf} leaf`, "e\u00b4f", "café", "e x f"].map((each) => ({ name: each })),
        );
        expect(await search(words)).toEqual([name]);
      },
    );

    test("goes with tag, order, limit, after and include, and Link keeps them all", async () => {
      await grown(["a&b", "a&b", "x", "a&b"]);
      const query = "q=plant+PLA&tag=a%26b&order=desc&include=id&limit=1&after=4";
      expect(await walk(`/plants?${query}`)).toEqual(
        [2, 1].map((id) => [{ id, name: `Plant ${id}`, tag: "a&b" }]),
      );
    });

    test("leads to every match by its links, with a limit of 0, too", async () => {
      await grow("fern a", "ivy", "fern b", "ivy");
      expect(await walk("/plants?q=fern&limit=0")).toEqual([[], named("fern a"), named("fern b")]);
    });

    test("has up to 100 code points", async () => {
      await grow(leaf.repeat(100));
      expect(await search(leaf.repeat(100))).toEqual([leaf.repeat(100)]);
    });
  });

  describe("tags", () => {
    const tags = async (query = "") => (await call(`GET /tags?${query}`, 200)).json;

    test("are counted in code point order, and plants without one under the empty tag", async () => {
      expect(await tags()).toEqual([]);
      await grown(["b", "", "a", leaf, "\uff21", "a", "B"]);
      expect(await tags()).toEqual([
        ...[count("", 1), count("B", 1), count("a", 2), count("b", 1), count("\uff21", 1)],
        count(leaf, 1),
      ]);
      expect((await call("HEAD /tags?limit=1", 200)).next).toBe("/tags?limit=1&after=");
    });

    test("are cut by limit, and the links lead to every one", async () => {
      await grown(["", "a&b", "a&b", "c"]);
      const all = [[count("", 1)], [count("a&b", 2)], [count("c", 1)]];
      expect(await walk("/tags?limit=0")).toEqual([[], ...all]);
      expect(await walk("/tags?limit=3")).toEqual([all.flat()]);
    });

    test("start after a tag that need not exist, and may be empty", async () => {
      await grown(["", "a", "aa", "b"]);
      expect(await tags("after=")).toEqual([count("a", 1), count("aa", 1), count("b", 1)]);
      expect(await tags("after=a")).toEqual([count("aa", 1), count("b", 1)]);
      expect([await tags("after=ab"), await tags("after=c")]).toEqual([[count("b", 1)], []]);
    });

    test("show every change at once", async () => {
      await grown(["a"]);
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
