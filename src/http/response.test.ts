/** Lists that go out in several chunks. */
import { expect, test } from "bun:test";
import type { Plant } from "../domain/plant.ts";
import { renderList } from "./response.ts";

const fern: Plant = { id: 1n, name: "Fern", tag: "hall" };

test.each([
  ["the last", [[fern], []]],
  ["one in the middle", [[fern], [], [fern]]],
])("a list stays well-formed when a page has become empty: %s", async (_case, pages) => {
  const [first = [], ...others] = pages;
  const rest = { next: async () => others.shift(), close() {} };
  const body = renderList({ first, rest }, undefined);
  if (typeof body !== "object" || body instanceof Uint8Array)
    throw new Error("The list came whole.");
  let text = "";
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) text += chunk;
  expect(JSON.parse(text)).toHaveLength(pages.flat().length);
});
