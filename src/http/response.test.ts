/** Lists that go out in several chunks. */
import { describe, expect, test } from "bun:test";
import type { Plant } from "../domain/plant.ts";
import type { Source } from "../domain/plants.ts";
import { renderList } from "./response.ts";

const fern: Plant = { id: 9_007_199_254_740_993n, name: "Fern", tag: "hall" };
const rose: Plant = { id: -(2n ** 63n), name: 'R"o\\se\n🌹', tag: "" };

describe("a list", () => {
  async function renderPages(pages: readonly (readonly Plant[])[]): Promise<string[]> {
    const [first = [], ...others] = pages;
    const rest = { next: async () => others.shift(), close() {} };
    const body = renderList({ first, rest }, ["tag"]);
    if (typeof body !== "object" || body instanceof Blob) throw new Error("The list came whole.");
    const chunks: string[] = [];
    for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
      chunks.push(chunk);
    }
    return chunks;
  }

  test("of several pages is one JSON array, page by page", async () => {
    const chunks = await renderPages([[fern, rose], [fern], [rose]]);
    expect(chunks).toHaveLength(4);
    expect(JSON.parse(chunks.join(""))).toEqual([
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
    const rest: Source<readonly Plant[]> = {
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
