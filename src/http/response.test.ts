/** Lists that go out in several pieces. */
import { describe, expect, test } from "bun:test";
import type { Plant } from "../domain/plant.ts";
import type { Pages } from "../domain/plants.ts";
import { renderList } from "./response.ts";

const fern: Plant = { id: 9_007_199_254_740_993n, name: "Fern", tag: "hall" };
const rose: Plant = { id: -(2n ** 63n), name: 'R"o\\se\n🌹', tag: "" };

describe("a list", () => {
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
