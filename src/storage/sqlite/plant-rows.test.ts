/** Plants as a damaged file may have them. */
import { expect, test } from "bun:test";
import { checkRows } from "./plant-rows.ts";

const fern = (id: bigint) => ({ id, name: "Fern", tag: "" });
const refusal = expect.objectContaining({ code: "unavailable" });

test.each([[[]], [[-2n, 0n, 3n]], [[4n, 2n ** 62n]]])("passes plants in their order: %p", (ids) => {
  const plants = ids.map(fern);
  expect(checkRows(plants, undefined)).toBe(plants);
  expect(checkRows(plants, ids[0] === undefined ? 1n : ids[0] - 1n)).toBe(plants);
});

test.each([
  ["twice the same plant", [fern(1n), fern(1n)], undefined],
  ["a plant that leads back", [fern(1n), fern(3n), fern(2n)], undefined],
  ["a plant that is not behind where it should be", [fern(5n)], 5n],
  ["a plant without an id", [{ id: null, name: "Fern", tag: "" }], undefined],
  ["one behind others", [fern(-2n), { id: null, name: "Fern", tag: "" }], undefined],
  ["a plant without a name", [{ id: 1n, name: null, tag: "" }], undefined],
  ["a tag that is no text", [{ id: 1n, name: "Fern", tag: 7n }], undefined],
])("refuses %s", (_, rows, after) => {
  let thrown: unknown;
  try {
    checkRows(rows as never, after);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toEqual(refusal);
});
