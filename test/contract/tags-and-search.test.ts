/** Which plants a tag and a search find, and how tags are counted. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

/** One code point, two UTF-16 units. */
const leaf = "\u{1f33f}";

onEachEngine(({ call, list, walk, grow, plant }) => {
  /** Stores plants with these tags, named Plant 1, Plant 2 and so on after their ids. */
  async function growTags(...tags: readonly string[]): Promise<void> {
    await plant(tags.map((tag, index) => ({ name: `Plant ${index + 1}`, tag })));
  }

  describe("tag", () => {
    test("lists the plants with this tag", async () => {
      await growTags("shade", "Shade", "", "shade");

      expect(await list("tag=shade")).toEqual(["Plant 1", "Plant 4"]);
    });

    test("lists nothing for a part of a tag", async () => {
      await growTags("shade");

      expect(await list("tag=shad")).toEqual([]);
    });

    test("is compared exactly, and the empty one lists the plants without a tag", async () => {
      const tags = [
        "shade",
        "Shade",
        "shade ",
        "",
        "a b&c=d",
        "100%",
        "a+b",
        "\u00e9",
        "e\u0301",
        leaf.repeat(100),
        "\ufffd",
      ];
      await plant(tags.map((tag) => ({ name: `with the tag ${tag}`, tag })));

      for (const tag of tags) {
        const names = await list(`tag=${encodeURIComponent(tag)}`);
        expect(names).toEqual([`with the tag ${tag}`]);
      }
    });

    test("is kept in links, with limit and include", async () => {
      await growTags("a&b", "a&b", "x", "x", "a&b");

      expect(await walk("/plants?tag=a%26b&limit=1&include=id")).toEqual([
        [{ id: 1, name: "Plant 1", tag: "a&b" }],
        [{ id: 2, name: "Plant 2", tag: "a&b" }],
        [{ id: 5, name: "Plant 5", tag: "a&b" }],
      ]);
    });

    test.each([
      "/plants?tag=a%26b&limit=1&include=id&order=desc&after=5",
      "/plants?tag=a%26b&limit=1&include=id&order=desc&after=5&q=plant+PLA",
    ])("is kept in links, with all other parameters: %s", async (target) => {
      await growTags("a&b", "a&b", "x", "x", "a&b");

      expect(await walk(target)).toEqual([
        [{ id: 2, name: "Plant 2", tag: "a&b" }],
        [{ id: 1, name: "Plant 1", tag: "a&b" }],
      ]);
    });
  });

  describe("a search", () => {
    async function growFerns(): Promise<void> {
      await plant([
        { name: "Monstera deliciosa" },
        { name: "Fern", tag: "monster" },
        { name: "Royal fern", tag: "pond" },
      ]);
    }

    test("finds plants that contain the word in their name or their tag", async () => {
      await growFerns();

      expect(await list("q=onster")).toEqual(["Monstera deliciosa", "Fern"]);
      expect(await list("q=monstera")).toEqual(["Monstera deliciosa"]);
    });

    test("finds plants that contain each of the words, in any order", async () => {
      await growFerns();

      expect(await list("q=fern+royal")).toEqual(["Royal fern"]);
      expect(await list("q=roy+fer+on")).toEqual(["Royal fern"]);
      expect(await list("q=royal+ivy")).toEqual([]);
    });

    test("takes any white space between and around words", async () => {
      await growFerns();

      const ideographicSpace = "%E3%80%80";
      expect(await list(`q=+pond${ideographicSpace}FERN%09`)).toEqual(["Royal fern"]);
    });

    test("finds no word that begins in the name and ends in the tag", async () => {
      await growFerns();

      expect(await list("q=fernpond")).toEqual([]);
    });

    test("with a limit of 0 links to pages of one", async () => {
      await growFerns();

      expect(await walk("/plants?q=monst&limit=0")).toEqual([
        [],
        [{ name: "Monstera deliciosa", tag: "" }],
        [{ name: "Fern", tag: "monster" }],
      ]);
    });

    /** Each of the searches below finds exactly one of them. */
    const oddNames = [
      "CRÈME Brûlée",
      "\u0130stanbul",
      "ΟΔΟΣ",
      "\ufb01g",
      "100% [a].*",
      "a_b",
      `${leaf} leaf`,
      "e\u00b4f",
      "café",
      "e x f",
    ];

    test.each([
      ["creme BRULEE", "CRÈME Brûlée"],
      ["bru\u0302lée", "CRÈME Brûlée"],
      ["istan", "\u0130stanbul"],
      ["οδοσ", "ΟΔΟΣ"],
      ["fig", "\ufb01g"],
    ])("pays no attention to case and accents: %s finds %s", async (words, name) => {
      await grow(...oddNames);

      expect(await list(`q=${encodeURIComponent(words)}`)).toEqual([name]);
    });

    test.each([
      ["[A].*", "100% [a].*"],
      ["%", "100% [a].*"],
      ["_", "a_b"],
      [leaf, `${leaf} leaf`],
      ["e\u00b4f", "e\u00b4f"],
    ])("takes every character literally: %s finds %s", async (words, name) => {
      await grow(...oddNames);

      expect(await list(`q=${encodeURIComponent(words)}`)).toEqual([name]);
    });

    test("ignores words of accents only", async () => {
      const accents = "\u0301 \u00b4 a\u0301";
      await grow("Fern", accents);

      expect(await list(`q=${encodeURIComponent("fern \u00b4")}`)).toEqual(["Fern"]);
      expect(await list(`q=${encodeURIComponent("\u0301 fern \u00a8")}`)).toEqual(["Fern"]);
      expect(await list(`q=${encodeURIComponent(accents)}`)).toEqual([accents]);
    });
  });

  describe("tags", () => {
    test("of an empty garden are an empty list", async () => {
      expect((await call("GET /tags", 200)).json).toEqual([]);
    });

    test("are counted in code point order, and plants without one under the empty tag", async () => {
      await growTags("b", "", "a", leaf, "\uff21", "a", "B");

      expect((await call("GET /tags", 200)).json).toEqual([
        { tag: "", plants: 1 },
        { tag: "B", plants: 1 },
        { tag: "a", plants: 2 },
        { tag: "b", plants: 1 },
        { tag: "\uff21", plants: 1 },
        { tag: leaf, plants: 1 },
      ]);
    });

    test("are cut by limit, with links to the others", async () => {
      await growTags("", "a&b", "a&b", "c");

      expect(await walk("/tags?limit=1")).toEqual([
        [{ tag: "", plants: 1 }],
        [{ tag: "a&b", plants: 2 }],
        [{ tag: "c", plants: 1 }],
      ]);
    });

    test("are all on one page if limit is their number", async () => {
      await growTags("", "a&b", "a&b", "c");

      expect(await walk("/tags?limit=3")).toEqual([
        [
          { tag: "", plants: 1 },
          { tag: "a&b", plants: 2 },
          { tag: "c", plants: 1 },
        ],
      ]);
    });

    test("with a limit of 0 link to pages of one", async () => {
      await growTags("", "a&b", "a&b", "c");

      expect(await walk("/tags?limit=0")).toEqual([
        [],
        [{ tag: "", plants: 1 }],
        [{ tag: "a&b", plants: 2 }],
        [{ tag: "c", plants: 1 }],
      ]);
    });

    test("have a link after the empty tag, for HEAD, too", async () => {
      await growTags("", "a");

      expect((await call("HEAD /tags?limit=1", 200)).next).toBe("/tags?limit=1&after=");
    });

    test("start after any tag, even one that no plant has", async () => {
      await growTags("", "a&b", "a&b", "c");

      expect((await call("GET /tags?after=", 200)).json).toEqual([
        { tag: "a&b", plants: 2 },
        { tag: "c", plants: 1 },
      ]);
      expect((await call("GET /tags?after=b", 200)).json).toEqual([{ tag: "c", plants: 1 }]);
      expect((await call("GET /tags?after=c", 200)).json).toEqual([]);
    });
  });
});
