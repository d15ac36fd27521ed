/** JSON is parsed without losing digits, keys, members or items. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { exactInteger, itemsOf, parseJsonObject } from "./json-text.ts";

test.each<[string, bigint | undefined]>([
  ["-0", 0n],
  ["0e5", 0n],
  [`1${"0".repeat(65_000)}e-65000`, 1n],
  ["9.223372036854775807e18", 2n ** 63n - 1n],
  ...["0.5", "-0.1", "1e-400", "15e-1", "9007199254740993.5"].map(
    (source) => [source, undefined] as [string, undefined],
  ),
])("the integer of %.40s is exactly %p", (source, expected) => {
  expect(exactInteger(source)).toBe(expected);
});

/** Numbers beyond the 64-bit range, which are not kept exactly, are in arrays only. */
const member = fc.oneof(
  fc.maxSafeInteger(),
  fc.string(),
  fc.jsonValue().map((value) => [value]),
);
const space = fc.constantFrom("", " ", "\n\t");
const jsonObject = fc
  .tuple(fc.dictionary(fc.string(), member), space)
  .map(([members, indent]) => JSON.stringify(members, null, indent));

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The same in every run. */
const runs = { numRuns: 500, seed: 1 };

test("any integer is the same however its point and exponent are placed", () => {
  const property = fc.property(
    fc.bigInt(-(10n ** 19n), 10n ** 19n),
    fc.nat(30),
    (integer, shift) => {
      const digits = String(integer < 0n ? -integer : integer).padStart(shift + 1, "0");
      const point = digits.length - shift;
      const source = `${integer < 0n ? "-" : ""}${digits.slice(0, point)}.${digits.slice(point)}0e${shift}`;
      expect(exactInteger(source)).toBe(integer);
      expect(exactInteger(`${integer}${"0".repeat(shift)}E-${shift}`)).toBe(integer);
    },
  );
  fc.assert(property, runs);
});

test("any object has the members that JSON.parse finds", () => {
  const property = fc.property(jsonObject, (text) => {
    const { members = {}, repeatedKeys } = parseJsonObject(text) ?? {};
    const rounded = Object.entries(members).map(([key, value]) => [
      key,
      typeof value === "bigint" ? Number(value) : value,
    ]);
    expect(rounded).toEqual(Object.entries(JSON.parse(text)));
    expect(repeatedKeys).toEqual([]);
  });
  fc.assert(property, runs);
});

test("any text is an object exactly if JSON.parse says so", () => {
  const character = fc.constantFrom("", '"', "}", "]", ",", "1", "\\");
  const property = fc.property(jsonObject, fc.nat(), character, (text, position, by) => {
    const at = position % (text.length + 1);
    const changed = text.slice(0, at) + by + text.slice(at + 1);
    const parsed = attempt(() => JSON.parse(changed));
    const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    expect(parseJsonObject(changed) !== undefined).toBe(isObject);
  });
  fc.assert(property, runs);
});

test("any text has items exactly where JSON.parse finds an array", () => {
  const change = fc.constantFrom(...'[]{},:"\\ 0-e\n\u00a0');
  const items = fc.array(fc.jsonValue(), { maxLength: 6 });
  const property = fc.property(items, space, fc.nat(), fc.nat(2), change, (...changed) => {
    const [values, indent, at, cut, added] = changed;
    const whole = JSON.stringify(values, null, indent);
    const index = at % (whole.length + 1);
    const text = whole.slice(0, index) + added + whole.slice(index + cut);
    const parsed = attempt(() => JSON.parse(text));
    const found = attempt(() => [...itemsOf(text, text.length)].map((item) => JSON.parse(item)));
    expect(found).toEqual(Array.isArray(parsed) ? parsed : undefined);
  });
  fc.assert(property, { ...runs, numRuns: 2_000 });
});

test("items are cut where they are too long", () => {
  expect(itemsOf('["four", "fives"]', 6).toArray()).toEqual(['"four"', '"fives"']);
  expect(itemsOf("[[0, 0], [0, 0, 0]]", 6).take(2).toArray()).toEqual(["[0, 0]", "[0, 0, "]);
});
