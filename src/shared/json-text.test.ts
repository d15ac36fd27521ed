/** JSON is parsed without losing digits, members or items. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { always } from "../../testing/property.ts";
import { exactInteger, itemsOf, membersOf, parseJsonObject } from "./json-text.ts";

/** Numbers beyond the 64-bit range, which are not kept exactly, are in arrays only. */
const member = fc.oneof(
  fc.maxSafeInteger(),
  fc.string(),
  fc.jsonValue().map((value) => [value]),
);
const members = fc.dictionary(fc.string(), member);
const items = fc.array(fc.jsonValue(), { maxLength: 6 });
const space = fc.constantFrom("", " ", "\n\t");
const change = fc.constantFrom("", ...'[]{},:"\\ 0\n\u00a0');

/** The text of a value with one change, which it rarely survives as JSON. */
const changed = (value: fc.Arbitrary<unknown>) =>
  fc.tuple(value, space, fc.nat(), fc.nat(2), change).map(([whole, indent, position, cut, by]) => {
    const text = JSON.stringify(whole, null, indent);
    const at = position % (text.length + 1);
    return text.slice(0, at) + by + text.slice(at + cut);
  });

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}

const runs = 2_000;

test("any integer is the same however its point and exponent are placed, and no fraction is one", () => {
  const property = fc.property(
    fc.bigInt(-(10n ** 19n), 10n ** 19n),
    fc.nat(30),
    (integer, shift) => {
      const digits = String(integer < 0n ? -integer : integer).padStart(shift + 1, "0");
      const point = digits.length - shift;
      const source = `${integer < 0n ? "-" : ""}${digits.slice(0, point)}.${digits.slice(point)}0e${shift}`;
      expect(exactInteger(source)).toBe(integer);
      // JSON has no leading zeros.
      if (integer === 0n) return;
      expect(exactInteger(`${integer}${"0".repeat(shift)}E-${shift}`)).toBe(integer);
      expect(exactInteger(`${integer}5${"0".repeat(shift)}E-${shift + 1}`)).toBeUndefined();
    },
  );
  always(property, runs);
});

test("no text is an integer that isn't a number to JSON.parse", () => {
  const texts = fc.array(fc.constantFrom(..."0017-+.eE"), { maxLength: 6 });
  const property = fc.property(texts, (characters) => {
    const text = characters.join("");
    const isNumber = typeof attempt(() => JSON.parse(text)) === "number";
    if (!isNumber) expect([text, exactInteger(text)]).toEqual([text, undefined]);
  });
  always(property, runs);
});

test("any text has members exactly where JSON.parse finds an object", () => {
  const property = fc.property(changed(members), (text) => {
    const parsed = attempt(() => JSON.parse(text));
    const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    const found = Object.entries(parseJsonObject(text)?.members ?? { none: true });
    const rounded = found.map(([key, each]) => [
      key,
      typeof each === "bigint" ? Number(each) : each,
    ]);
    expect(rounded).toEqual(Object.entries(isObject ? parsed : { none: true }));
  });
  always(property, runs);
});

test("any text has members, one by one, exactly where JSON.parse finds an object", () => {
  const property = fc.property(changed(members), (text) => {
    const parsed = attempt(() => JSON.parse(text));
    const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    const found = attempt(() =>
      Object.fromEntries([...membersOf(text)].map(([key, { text }]) => [key, JSON.parse(text)])),
    );
    expect(found).toEqual(isObject ? parsed : undefined);
  });
  always(property, runs);
});

test("any text has items exactly where JSON.parse finds an array", () => {
  const property = fc.property(changed(items), (text) => {
    const parsed = attempt(() => JSON.parse(text));
    const found = attempt(() => [...itemsOf(text)].map((item) => JSON.parse(item.text)));
    expect(found).toEqual(Array.isArray(parsed) ? parsed : undefined);
  });
  always(property, runs);
});
