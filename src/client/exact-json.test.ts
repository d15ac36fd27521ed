/** Ids keep all their digits, and everything else stays what it is. */
import { expect, test } from "bun:test";
import { parseWithExactIds, readId, renderId } from "./exact-json.ts";

test.each<[string, unknown]>([
  ["[]", []],
  ["[1,-2]", [1, -2]],
  ['{"id":-9223372036854775808}', { id: -(2n ** 63n) }],
  ['{ "id" : 9007199254740993 }', { id: 9_007_199_254_740_993n }],
  ['[{"id":1},{"id":2,"name":"id"}]', [{ id: 1n }, { id: 2n, name: "id" }]],
  ['{"name":"\\"id\\":1"}', { name: '"id":1' }],
  ['{"name":"\\\\","id":1}', { name: "\\", id: 1n }],
  ['{"name":"\\\\\\"1","id":1}', { name: '\\"1', id: 1n }],
  ['{"id":"1"}', { id: "1" }],
  ['{"id":1.5,"tag":"1"}', { id: 1.5, tag: "1" }],
  ['{"id":1e3}', { id: 1_000 }],
  ['{"id":null,"other":12}', { id: null, other: 12 }],
])("%s", (text, expected) => {
  expect(parseWithExactIds(text)).toEqual(expected);
});

test.each(["", "[1", '{"id":1', '["a]', "[1 2]", '{"id":1 2}'])(
  "refuses what is no JSON: %s",
  (text) => {
    expect(() => parseWithExactIds(text)).toThrow(SyntaxError);
  },
);

test("an id is written with all its digits, or refused", () => {
  expect(renderId(2n ** 63n - 1n)).toBe("9223372036854775807");
  expect(renderId(Number.MAX_SAFE_INTEGER)).toBe("9007199254740991");
  for (const id of [2 ** 53, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => renderId(id)).toThrow(RangeError);
  }
});

test("an id is read from its digits, and from nothing else", () => {
  expect(readId("-9223372036854775808")).toBe(-(2n ** 63n));
  for (const text of ["", " 7", "0x7", "1e3", "-", undefined, 7]) {
    expect(() => readId(text)).toThrow(SyntaxError);
  }
});
