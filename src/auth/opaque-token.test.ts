/** Opaque tokens: their form and checksum. */
import { expect, test } from "bun:test";
import { isTokenForm, makeToken } from "./opaque-token.ts";

test("a new token has a token's form", () => {
  expect(isTokenForm(makeToken("greenhouse"))).toBe(true);
});

test("a token with any one character mistyped doesn't have a token's form", () => {
  const token = makeToken("greenhouse");
  for (let index = 0; index < token.length; index++) {
    const typo = token[index] === "x" ? "y" : "x";
    const mistyped = token.slice(0, index) + typo + token.slice(index + 1);
    expect(isTokenForm(mistyped)).toBe(false);
  }
});
