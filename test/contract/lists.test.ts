/** Lists: in which order, how pages go on, and that cached ones are never stale. */
import { describe, expect, spyOn, test } from "bun:test";
import { remove } from "../../testing/tested-storage.ts";
import { onEachEngine } from "./garden.ts";

/** These plants, without tags, as a list shows them. */
function untagged(...names: string[]): { name: string; tag: string }[] {
  return names.map((name) => ({ name, tag: "" }));
}

onEachEngine((garden) => {
  const { call, stranger, list, walk, grow, plant, service } = garden;

  /** Stores plants with these ids, which are their names, too. */
  async function growIds(...ids: readonly bigint[]): Promise<void> {
    await plant(ids.map((id) => ({ id, name: String(id) })));
  }

  describe("a list", () => {
    test("is a JSON array of names and tags, by ascending id", async () => {
      await plant([
        { id: 9007199254740993n, name: "Moss" },
        { id: 3n, name: "Ivy" },
        { id: -1n, name: "Fern", tag: "shade" },
      ]);

      const { text } = await call("GET /plants", 200);

      expect(text).toBe(
        '[{"name":"Fern","tag":"shade"},{"name":"Ivy","tag":""},{"name":"Moss","tag":""}]',
      );
    });

    test("has the ids, too, with include=id", async () => {
      await plant([
        { id: 9007199254740993n, name: "Moss" },
        { id: 3n, name: "Ivy" },
        { id: -1n, name: "Fern" },
      ]);

      const { text } = await call("GET /plants?include=id&after=-1", 200);

      expect(text).toBe(
        '[{"id":3,"name":"Ivy","tag":""},{"id":9007199254740993,"name":"Moss","tag":""}]',
      );
    });

    test("shows nothing to another garden, however often it was requested", async () => {
      // Both gardens have seen the same number of changes, which caches compare.
      await call("POST /plants", 201, { name: "ours", id: 1 });
      await stranger("POST /plants", 201, { name: "theirs", id: 1 });

      for (let time = 0; time < 3; time++) expect(await list()).toEqual(["ours"]);

      expect((await stranger("GET /plants", 200)).json).toEqual(untagged("theirs"));
    });
  });

  describe("limit", () => {
    test("cuts the list into pages, and their links keep include=id", async () => {
      await grow("a", "b", "c", "d", "e");

      expect(await walk("/plants?limit=2&include=id")).toEqual([
        [
          { id: 1, name: "a", tag: "" },
          { id: 2, name: "b", tag: "" },
        ],
        [
          { id: 3, name: "c", tag: "" },
          { id: 4, name: "d", tag: "" },
        ],
        [{ id: 5, name: "e", tag: "" }],
      ]);
    });

    test("of 0 is an empty page, with a link to pages of one", async () => {
      await grow("a", "b", "c");

      expect(await walk("/plants?limit=0")).toEqual([
        [],
        untagged("a"),
        untagged("b"),
        untagged("c"),
      ]);
    });

    test.each([
      ["GET /plants?limit=4", "/plants?limit=4&after=4"],
      ["HEAD /plants?limit=2", "/plants?limit=2&after=2"],
    ])("links to the next page if there is one: %s", async (request, next) => {
      await grow("a", "b", "c", "d", "e");

      expect((await call(request, 200)).next).toBe(next);
    });

    test.each([
      "GET /plants",
      "GET /plants?limit=5",
      "GET /plants?limit=1000",
      "GET /plants?limit=2147483647",
      "GET /plants?after=5&limit=0",
    ])("has no link if the list is complete: %s", async (request) => {
      await grow("a", "b", "c", "d", "e");

      expect((await call(request, 200)).next).toBeUndefined();
    });
  });

  describe("after", () => {
    test.each([
      ["after=1&limit=1", ["2"]],
      ["after=9007199254740993", ["9007199254740994"]],
      ["after=9007199254740994", []],
      ["after=-9223372036854775808", ["1", "2", "3", "9007199254740993", "9007199254740994"]],
      ["after=9223372036854775807", []],
    ])("starts the list after exactly this id: %s", async (query, names) => {
      await growIds(9007199254740994n, 9007199254740993n, 1n, 2n, 3n);

      expect(await list(query)).toEqual(names);
    });
  });

  describe("order", () => {
    test("of asc lists plants by ascending id", async () => {
      await growIds(9007199254740994n, 9007199254740993n, 1n, 2n, 3n);

      expect(await list("order=asc&limit=2")).toEqual(["1", "2"]);
    });

    test("of desc lists pages of plants by descending id", async () => {
      await growIds(9007199254740994n, 9007199254740993n, 1n, 2n, 3n);

      expect(await walk("/plants?order=desc&limit=2")).toEqual([
        untagged("9007199254740994", "9007199254740993"),
        untagged("3", "2"),
        untagged("1"),
      ]);
    });

    test.each([
      ["order=desc&after=3", ["2", "1"]],
      ["order=desc&after=-9223372036854775808", []],
      ["order=desc&after=9223372036854775807&limit=1", ["9007199254740994"]],
    ])("of desc continues below an id: %s", async (query, names) => {
      await growIds(9007199254740994n, 9007199254740993n, 1n, 2n, 3n);

      expect(await list(query)).toEqual(names);
    });
  });

  describe("a list that is requested often, and so is cached,", () => {
    /** Requests a list so often that it's cached. All responses must be the same. */
    async function listOften(query = ""): Promise<string[]> {
      const names = await list(query);
      for (let time = 0; time < 3; time++) expect(await list(query)).toEqual(names);
      return names;
    }

    async function countTagsOften(): Promise<unknown> {
      const { json } = await call("GET /tags", 200);
      for (let time = 0; time < 3; time++) {
        expect((await call("GET /tags", 200)).json).toEqual(json);
      }
      return json;
    }

    /** Stores the plants 1, 12 and 13, and has all the lists below cached. */
    async function growAndList(): Promise<void> {
      await growIds(1n, 12n, 13n);
      expect(await listOften("limit=1&order=desc")).toEqual(["13"]);
      expect(await listOften("limit=1&q=1")).toEqual(["1"]);
      expect(await listOften("limit=2")).toEqual(["1", "12"]);
      expect(await listOften("limit=9&after=2")).toEqual(["12", "13"]);
      expect(await listOften()).toEqual(["1", "12", "13"]);
      expect(await countTagsOften()).toEqual([{ tag: "", plants: 3 }]);
    }

    test("shows a new plant before the others", async () => {
      await growAndList();

      await growIds(-1n);

      expect(await listOften("limit=1&order=desc")).toEqual(["13"]);
      expect(await listOften("limit=1&q=1")).toEqual(["-1"]);
      expect(await listOften("limit=2")).toEqual(["-1", "1"]);
      expect(await listOften("limit=9&after=2")).toEqual(["12", "13"]);
      expect(await listOften()).toEqual(["-1", "1", "12", "13"]);
      expect(await countTagsOften()).toEqual([{ tag: "", plants: 4 }]);
    });

    test("shows a new plant with an assigned id after the others", async () => {
      await growAndList();

      await plant([{ name: "14" }]);

      expect(await listOften("limit=1&order=desc")).toEqual(["14"]);
      expect(await listOften("limit=1&q=1")).toEqual(["1"]);
      expect(await listOften("limit=2")).toEqual(["1", "12"]);
      expect(await listOften("limit=9&after=2")).toEqual(["12", "13", "14"]);
      expect(await listOften()).toEqual(["1", "12", "13", "14"]);
      expect(await countTagsOften()).toEqual([{ tag: "", plants: 4 }]);
    });

    test("doesn't show a plant that was deleted", async () => {
      await growAndList();

      await service.storage.apply([remove(1n, garden.name)]);

      expect(await listOften("limit=1&order=desc")).toEqual(["13"]);
      expect(await listOften("limit=1&q=1")).toEqual(["12"]);
      expect(await listOften("limit=2")).toEqual(["12", "13"]);
      expect(await listOften("limit=9&after=2")).toEqual(["12", "13"]);
      expect(await listOften()).toEqual(["12", "13"]);
      expect(await countTagsOften()).toEqual([{ tag: "", plants: 2 }]);
    });

    test("has a link that works even if its last plant is deleted", async () => {
      await growIds(-1n, 1n, 12n, 13n, 14n);
      await listOften("limit=2");
      const { next } = await call("GET /plants?limit=2", 200);

      await service.storage.apply([remove(1n, garden.name)]);

      expect(next).toBe("/plants?limit=2&after=1");
      expect(await walk(next ?? "")).toEqual([untagged("12", "13"), untagged("14")]);
    });

    test("shows a write that happened while it was read", async () => {
      await grow("Fern");
      await listOften("limit=9");
      await plant([{ name: "Ivy" }]);
      const readList = service.storage.list.bind(service.storage);
      {
        using _overtaken = spyOn(service.storage, "list").mockImplementation(async (...query) => {
          const found = await readList(...query);
          await plant([{ name: "Moss" }]);
          return found;
        });
        // Moss came too late for this one, which must not be cached.
        expect(await list("limit=9")).toEqual(["Fern", "Ivy"]);
      }

      expect(await list("limit=9")).toEqual(["Fern", "Ivy", "Moss"]);
    });

    test("shows a plant with an assigned id before the highest ids", async () => {
      await growIds(0n, 9223372036854775806n, 9223372036854775807n);
      expect(await listOften("limit=2")).toEqual(["0", "9223372036854775806"]);

      await plant([{ name: "new" }]);

      expect(await listOften("limit=2")).toEqual(["0", "new"]);
    });
  });
});
