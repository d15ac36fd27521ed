/** The kinds of text that parameters hold: integers, sets of names, idempotency keys. */
import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { integerText, keyText, namesText, type TextSchema } from "./parameters.ts";

function read(schema: TextSchema, text: string): unknown {
  const parsed = v.safeParse(schema, text, { abortPipeEarly: true });
  return parsed.success ? parsed.output : parsed.issues[0].message;
}

describe("an integer", () => {
  const id = integerText(-(2n ** 63n), 2n ** 63n - 1n, {});
  const limit = integerText(0n, 2_147_483_647n, {});
  const message = "must be a decimal integer from 0 to 2147483647, in its shortest form";

  test.each(["0", "1", "20", "2147483647"])("may be %s within 0 and 2147483647", (text) => {
    expect(read(limit, text)).toBe(BigInt(text));
  });

  test.each([
    ["nothing", ""],
    ["a negative", "-1"],
    ["one above the end", "2147483648"],
    ["a number of 20 digits", "10000000000000000000"],
    ["a plus sign", "+1"],
    ["a leading zero", "007"],
    ["two zeros", "00"],
    ["minus zero", "-0"],
    ["a fraction", "1.0"],
    ["an exponent", "1e3"],
    ["hexadecimal", "0x1"],
    ["a space before", " 1"],
    ["a space behind", "1 "],
    ["a line break behind", "1\n"],
    ["a separator", "1_000"],
    ["digits of another script", "١"],
    ["text", "ten"],
    ["a broken escape", "%31"],
  ])("is not %s", (_case, text) => {
    expect(read(limit, text)).toBe(message);
  });

  test.each(["-9223372036854775808", "-1", "9007199254740993", "9223372036854775807"])(
    "keeps all digits of %s",
    (text) => {
      expect(read(id, text)).toBe(BigInt(text));
    },
  );

  test.each(["-9223372036854775809", "9223372036854775808", "9999999999999999999"])(
    "refuses %s, which 64 bits do not hold",
    (text) => {
      expect(read(id, text)).toStartWith("must be a decimal integer from -9223372036854775808");
    },
  );

  test("reads back every neighbour of a power of two and of ten", () => {
    for (let exponent = 0n; exponent < 63n; exponent++) {
      for (const base of [2n, 10n]) {
        const power = base ** exponent;
        for (const value of [power - 1n, power, power + 1n, -power, 1n - power]) {
          const isInRange = value >= -(2n ** 63n) && value < 2n ** 63n;
          expect([value, typeof read(id, String(value))]).toEqual([
            value,
            isInRange ? "bigint" : "string",
          ]);
          if (isInRange) expect(read(id, String(value))).toBe(value);
        }
      }
    }
  });
});

describe("a set of names", () => {
  const fields = namesText(["id", "name", "tag"]);

  test.each([
    ["id", ["id"]],
    ["name,tag", ["name", "tag"]],
    ["tag,name,id", ["id", "name", "tag"]],
  ])("%s is read in the order in which the names were declared", (text, expected) => {
    expect(read(fields, text)).toEqual(expected);
  });

  test.each(["", ",", "id,", ",id", "id,,tag", "id,id", "color", "ID", "id, name", "id;name"])(
    "refuses %p",
    (text) => {
      expect(read(fields, text)).toBe(
        "must be one or more of id, name, tag, separated by commas, none twice",
      );
    },
  );
});

describe("an idempotency key", () => {
  test.each([
    ["one character", "k", "k"],
    ["255 characters", "k".repeat(255), "k".repeat(255)],
    ["255 characters in quotes", `"${"k".repeat(255)}"`, "k".repeat(255)],
    ["the first and the last visible character", "!~", "!~"],
    ["quotes, which do not count", '"k-1"', "k-1"],
    ["escapes in quotes", '"a\\"b\\\\c"', 'a"b\\c'],
    ["a quote that is not the first character", 'a"b', 'a"b'],
  ])("may be %s", (_case, text, expected) => {
    expect(read(keyText, text)).toBe(expected);
  });

  test.each([
    ["nothing", ""],
    ["an empty quoted string", '""'],
    ["256 characters", "k".repeat(256)],
    ["256 characters in quotes", `"${"k".repeat(256)}"`],
    ["a space inside", "a b"],
    ["a space inside quotes", '"a b"'],
    ["a control character", "a\u007f"],
    ["a character beyond ASCII", "ä"],
    ["a quote that is not closed", '"abc'],
    ["a lone quote", '"'],
    ["a quote inside quotes", '"a"b"'],
    ["an escape of another character", '"a\\n"'],
    ["two keys, as repeated headers arrive", "a, b"],
  ])("is not %s", (_case, text) => {
    expect(read(keyText, text)).toStartWith("must be 1 to 255 visible ASCII characters");
  });
});
