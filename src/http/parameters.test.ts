/** Texts of parameters, as far as the contract table does not have them. */
import { expect, test } from "bun:test";
import * as v from "valibot";
import { integerText, keyText, type TextSchema } from "./parameters.ts";

function read(schema: TextSchema, text: string): unknown {
  const parsed = v.safeParse(schema, text, { abortPipeEarly: true });
  return parsed.success ? parsed.output : parsed.issues[0].message;
}

const id = integerText(-(2n ** 63n), 2n ** 63n - 1n, {});

test("an integer reads back every neighbour of a power of two and of ten", () => {
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

test("a key may have one character", () => {
  expect(read(keyText(255), "k")).toBe("k");
});
