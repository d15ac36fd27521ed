/** How plants, links and locations look: frozen bodies, exact ids, lists in one or many pieces. */
import { describe, expect, test } from "bun:test";
import type { Plant, PlantField } from "../domain/plant.ts";
import type { Pages } from "../domain/plants.ts";
import { jsonAnswer, linkToNext, plantLocation, renderList, renderPlant } from "./response.ts";

const fern: Plant = { id: 9_007_199_254_740_993n, name: "Fern", tag: "hall" };
const rose: Plant = { id: -(2n ** 63n), name: 'R"o\\se\n🌹', tag: "" };

test("a plant is its name and tag, in this order, and nothing else", () => {
  expect(renderPlant(fern)).toBe('{"name":"Fern","tag":"hall"}');
  expect(JSON.parse(renderPlant(rose))).toEqual({ name: rose.name, tag: "" });
});

test("an answer is JSON", () => {
  expect(jsonAnswer(201, "{}", { Location: "/x" })).toEqual({
    status: 201,
    contentType: "application/json",
    headers: { Location: "/x" },
    body: "{}",
  });
});

describe("a list", () => {
  test.each<[string, PlantField[], Plant[], string]>([
    ["without plants", ["name", "tag"], [], "[]"],
    ["of one plant", ["name", "tag"], [fern], '[{"name":"Fern","tag":"hall"}]'],
    ["with ids", ["id"], [fern, rose], '[{"id":9007199254740993},{"id":-9223372036854775808}]'],
    [
      "with all fields",
      ["id", "name", "tag"],
      [fern],
      '[{"id":9007199254740993,"name":"Fern","tag":"hall"}]',
    ],
    ["of tags only", ["tag"], [fern, rose], '[{"tag":"hall"},{"tag":""}]'],
  ])("%s goes out whole, with all digits of an id", (_case, fields, first, expected) => {
    expect(renderList({ first }, fields)).toBe(expected);
  });

  async function renderPages(pages: readonly (readonly Plant[])[]): Promise<string[]> {
    const [first = [], ...others] = pages;
    const rest = { next: async () => others.shift(), close() {} };
    const body = renderList({ first, rest }, ["tag"]);
    if (typeof body !== "object" || body instanceof Blob) throw new Error("The list came whole.");
    const pieces: string[] = [];
    for (let piece = await body.next(); piece !== undefined; piece = await body.next()) {
      pieces.push(piece);
    }
    return pieces;
  }

  test("of several pages is one JSON array, page by page", async () => {
    const pieces = await renderPages([[fern, rose], [fern], [rose]]);
    expect(pieces).toHaveLength(4);
    expect(JSON.parse(pieces.join(""))).toEqual([
      { tag: "hall" },
      { tag: "" },
      { tag: "hall" },
      { tag: "" },
    ]);
  });

  test.each([
    ["the last", [[fern], []]],
    ["one in the middle", [[fern], [], [rose]]],
  ])("stays well-formed when a page has become empty: %s", async (_case, pages) => {
    const text = (await renderPages(pages)).join("");
    expect(JSON.parse(text)).toHaveLength(pages.flat().length);
  });

  test("reads no page before it is asked for it", () => {
    let isRead = false;
    const rest: Pages = {
      async next() {
        isRead = true;
        return undefined;
      },
      close() {},
    };
    renderList({ first: [fern], rest }, ["tag"]);
    expect(isRead).toBe(false);
  });
});

test.each([
  ["", 7n, "/plants/7"],
  ["/v1", -(2n ** 63n), "/v1/plants/-9223372036854775808"],
])("below the base path %p the plant %p is at %s", (basePath, id, expected) => {
  expect(plantLocation(basePath, id)).toBe(expected);
});

describe("the link to the next page", () => {
  test("goes on behind the last plant", () => {
    expect(linkToNext("", { limit: 20, after: 27n }, undefined)).toBe(
      '</plants?limit=20&after=27>; rel="next"',
    );
  });

  test("keeps the base path and the fields that were asked for", () => {
    expect(linkToNext("/v1", { limit: 1, after: -5n }, ["id", "tag"])).toBe(
      '</v1/plants?limit=1&after=-5&fields=id,tag>; rel="next"',
    );
  });

  test("starts at the first plant when there was no page before", () => {
    expect(linkToNext("", { limit: 1 }, undefined)).toBe('</plants?limit=1>; rel="next"');
  });

  test("goes on behind the plant with the id 0", () => {
    expect(linkToNext("", { limit: 1, after: 0n }, undefined)).toContain("after=0>");
  });
});
