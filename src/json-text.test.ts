/** Reading a JSON object without losing digits, keys or members. */
import { describe, expect, test } from "bun:test";
import { exactInteger, parseJsonObject } from "./json-text.ts";

const outOfRange = 2n ** 64n;

describe("the integer of a JSON number", () => {
  test.each<[string, bigint]>([
    ["0", 0n],
    ["-0", 0n],
    ["0.000", 0n],
    ["0e5", 0n],
    ["7", 7n],
    ["-7", -7n],
    ["1.0", 1n],
    ["1e3", 1000n],
    ["1E+3", 1000n],
    ["12.50e1", 125n],
    ["0.1e1", 1n],
    ["100e-2", 1n],
    ["-1200e-2", -12n],
    ["9007199254740993", 9_007_199_254_740_993n],
    ["9007199254740993.000", 9_007_199_254_740_993n],
    ["9.223372036854775807e18", 2n ** 63n - 1n],
    ["9223372036854775808", 2n ** 63n],
    ["-9223372036854775808", -(2n ** 63n)],
    ["12345678901234567891", 12_345_678_901_234_567_891n],
  ])("%s is exactly %p", (source, expected) => {
    expect(exactInteger(source)).toBe(expected);
  });

  test.each(["0.5", "1.5", "-0.1", "1e-1", "1e-400", "15e-1", "9007199254740993.5", "1.0000001"])(
    "%s is none",
    (source) => {
      expect(exactInteger(source)).toBeUndefined();
    },
  );

  test.each([
    ["21 digits", "123456789012345678901", outOfRange],
    ["an exponent beyond a double", "1e400", outOfRange],
    ["a negative one", "-1e400", -outOfRange],
    ["an exponent beyond any number", `1e${"9".repeat(400)}`, outOfRange],
  ])("with %s is some integer out of the 64-bit range", (_case, source, expected) => {
    expect(exactInteger(source)).toBe(expected);
  });

  test("with as many zeros as a body has room for is read like any other", () => {
    expect(exactInteger(`1${"0".repeat(65_000)}1`)).toBe(outOfRange);
    expect(exactInteger(`0.${"0".repeat(65_000)}1`)).toBeUndefined();
    expect(exactInteger(`1${"0".repeat(65_000)}e-65000`)).toBe(1n);
  });
});

describe("a JSON object", () => {
  test.each<[string, string, Record<string, unknown>]>([
    ["without members", "{}", {}],
    ["with space everywhere", ' \t\n\r{ "a" : 1 , "b" : "x" } \n', { a: 1n, b: "x" }],
    ["without space", '{"a":1,"b":[1,2],"c":{"d":1}}', { a: 1n, b: [1, 2], c: { d: 1 } }],
    ["with every kind of value", '{"a":null,"b":true,"c":1.5}', { a: null, b: true, c: 1.5 }],
    ["with escapes in keys", '{"\\u0061\\"":"x"}', { 'a"': "x" }],
    ["with quotes and brackets in text", '{"a":"}\\"]{","b":2}', { a: '}"]{', b: 2n }],
    ["with a backslash at the end of text", '{"a":"\\\\","b":2}', { a: "\\", b: 2n }],
    [
      "with text in nested values",
      '{"a":["]",{"}":"\\"}"}],"b":2}',
      { a: ["]", { "}": '"}' }], b: 2n },
    ],
    ["with an empty key", '{"":1}', { "": 1n }],
    [
      "with names that objects have",
      '{"toString":1,"constructor":2}',
      { toString: 1n, constructor: 2n },
    ],
    ["with a number too large for a double", '{"a":1e999}', { a: outOfRange }],
    ["with a number too small for a double", '{"a":1e-999}', { a: 0 }],
  ])("%s is read whole", (_case, text, expected) => {
    const object = parseJsonObject(text);
    expect(Object.entries(object?.members ?? {})).toEqual(Object.entries(expected));
    expect(object?.repeatedKeys).toEqual([]);
  });

  test("keeps a member named __proto__ as a member", () => {
    const { members } = parseJsonObject('{"__proto__":{"name":"x"}}') ?? {};
    expect(Object.keys(members ?? {})).toEqual(["__proto__"]);
    expect(members?.name).toBeUndefined();
  });

  test.each([
    ["twice", '{"a":1,"a":2}', ["a"]],
    ["three times", '{"a":1,"a":2,"a":3}', ["a", "a"]],
    ["in two spellings", '{"a":1,"\\u0061":2}', ["a"]],
    ["with different kinds of values", '{"a":"x","b":0,"a":1}', ["a"]],
  ])("reports a key that is there %s", (_case, text, expected) => {
    expect(parseJsonObject(text)?.repeatedKeys).toEqual(expected);
  });

  test("does not mistake a key of a nested object for a repeated one", () => {
    expect(parseJsonObject('{"a":{"a":1,"b":2},"b":3}')?.repeatedKeys).toEqual([]);
  });

  test("keeps lone surrogates for those who check them", () => {
    expect(parseJsonObject('{"a":"\\ud800"}')?.members.a).toBe("\ud800");
  });

  test("is read at any depth of nesting that a body has room for", () => {
    const depth = 32_000;
    const text = `{"a":${"[".repeat(depth)}${"]".repeat(depth)},"b":7}`;
    const object = parseJsonObject(text);
    // A parser may refuse such depth, but it must not break.
    expect(object === undefined || object.members.b === 7n).toBe(true);
  });
});

test.each([
  "",
  " ",
  "[]",
  "[{}]",
  "null",
  "true",
  '"x"',
  "7",
  "{",
  "}",
  "{}{}",
  "{} x",
  '{"a":1,}',
  "{a:1}",
  "{'a':1}",
  '{"a":01}',
  '{"a":+1}',
  '{"a":1.}',
  '{"a":.5}',
  '{"a":0x1}',
  '{"a":NaN}',
  '{"a":"\n"}',
  '{"a":"\\x"}',
  "\ufeff{}",
  '{"a":1}// x',
])("finds no object in %p", (text) => {
  expect(parseJsonObject(text)).toBeUndefined();
});
