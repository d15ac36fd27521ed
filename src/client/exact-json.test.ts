/** Numbers keep all their digits, and strings stay what they are. */
import { expect, test } from "bun:test";
import { parseWithNumbersAsText, readId, renderId } from "./exact-json.ts";

test.each<[string, unknown]>([
  ["[]", []],
  ["[1,-2]", ["1", "-2"]],
  ['{"id":-9223372036854775808}', { id: "-9223372036854775808" }],
  ['{ "id" : 9007199254740993 }', { id: "9007199254740993" }],
  ['{"name":"\\"id\\":1"}', { name: '"id":1' }],
  ['{"name":"\\\\","id":1}', { name: "\\", id: "1" }],
  ['{"name":"\\\\\\"1","id":1}', { name: '\\"1', id: "1" }],
  ['{"name":"","tag":"1","id":1}', { name: "", tag: "1", id: "1" }],
  ["[true,null,1.5e3]", [true, null, "1.5e3"]],
])("%s", (text, expected) => {
  expect(parseWithNumbersAsText(text)).toEqual(expected);
});

test.each(["", "[1", '{"id":1', '["a]', "[1 2]"])("refuses what is no JSON: %s", (text) => {
  expect(() => parseWithNumbersAsText(text)).toThrow(SyntaxError);
});

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
