/** JSON is parsed without losing digits, members or items. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { always } from "../../testing/property.ts";
import { exactInteger, itemsOf, membersOf, parseJsonObject } from "./json-text.ts";

const runs = 2_000;

/** Undefined if the text isn't JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined if the text isn't the JSON of an object. */
function parseObject(text: string): object | undefined {
  const value = parseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}

function parseArray(text: string): unknown[] | undefined {
  const value = parseJson(text);
  return Array.isArray(value) ? value : undefined;
}

/** Numbers beyond the 64-bit range, which are not kept exactly, are in arrays only. */
const memberValues = fc.oneof(
  fc.maxSafeInteger(),
  fc.string(),
  fc.jsonValue().map((value) => [value]),
);
const objects = fc.dictionary(fc.string(), memberValues);
const arrays = fc.array(fc.jsonValue(), { maxLength: 6 });

/** JSON in which some characters are replaced by one, or by none. It's rarely JSON after that. */
function damagedJson(values: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const indents = fc.constantFrom("", " ", "\n\t");
  const replacements = fc.constantFrom("", ...'[]{},:"\\ 0\n\u00a0');
  return fc
    .tuple(values, indents, fc.nat(), fc.nat(2), replacements)
    .map(([value, indent, position, removed, replacement]) => {
      const text = JSON.stringify(value, null, indent);
      const at = position % (text.length + 1);
      return text.slice(0, at) + replacement + text.slice(at + removed);
    });
}

describe("an integer", () => {
  const integers = fc.bigInt(-(10n ** 19n), 10n ** 19n);
  const shifts = fc.nat(30);

  test("is the same wherever its point is, if its exponent makes up for it", () => {
    const property = fc.property(integers, shifts, (integer, shift) => {
      const sign = integer < 0n ? "-" : "";
      const digits = String(integer < 0n ? -integer : integer).padStart(shift + 1, "0");
      const whole = digits.slice(0, digits.length - shift);
      const fraction = digits.slice(digits.length - shift);

      expect(exactInteger(`${sign}${whole}.${fraction}0e${shift}`)).toBe(integer);
    });
    always(property, runs);
  });

  test("is the same with zeros that its exponent takes away", () => {
    const property = fc.property(integers, shifts, (integer, shift) => {
      // JSON has no leading zeros.
      fc.pre(integer !== 0n);
      const zeros = "0".repeat(shift);

      expect(exactInteger(`${integer}${zeros}E-${shift}`)).toBe(integer);
    });
    always(property, runs);
  });

  test("isn't found where the exponent leaves a fraction", () => {
    const property = fc.property(integers, shifts, (integer, shift) => {
      fc.pre(integer !== 0n);
      const zeros = "0".repeat(shift);

      expect(exactInteger(`${integer}5${zeros}E-${shift + 1}`)).toBeUndefined();
    });
    always(property, runs);
  });

  test("isn't found in a text that isn't a number to JSON.parse", () => {
    const characterLists = fc.array(fc.constantFrom(..."0017-+.eE"), { maxLength: 6 });
    const property = fc.property(characterLists, (characters) => {
      const text = characters.join("");
      fc.pre(typeof parseJson(text) !== "number");

      expect(exactInteger(text), text).toBeUndefined();
    });
    always(property, runs);
  });
});

describe("any text", () => {
  test("has the members that JSON.parse finds, if it finds an object", () => {
    const property = fc.property(damagedJson(objects), (text) => {
      const expected = parseObject(text);

      const found = parseJsonObject(text);

      const rounded = Object.entries(found?.members ?? {}).map(([key, value]) => [
        key,
        typeof value === "bigint" ? Number(value) : value,
      ]);
      expect(found === undefined).toBe(expected === undefined);
      expect(rounded).toEqual(Object.entries(expected ?? {}));
    });
    always(property, runs);
  });

  test("can be split into the members that JSON.parse finds, if it finds an object", () => {
    const split = (text: string) => {
      try {
        const members = [...membersOf(text)];
        return Object.fromEntries(members.map(([key, part]) => [key, JSON.parse(part.text)]));
      } catch {
        return undefined;
      }
    };
    const property = fc.property(damagedJson(objects), (text) => {
      expect(split(text)).toEqual(parseObject(text));
    });
    always(property, runs);
  });

  test("can be split into the items that JSON.parse finds, if it finds an array", () => {
    const split = (text: string) => {
      try {
        return [...itemsOf(text)].map((item) => JSON.parse(item.text));
      } catch {
        return undefined;
      }
    };
    const property = fc.property(damagedJson(arrays), (text) => {
      expect(split(text)).toEqual(parseArray(text));
    });
    always(property, runs);
  });
});
