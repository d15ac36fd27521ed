/** Opaque tokens: their form and checksum. */
import { expect, test } from "bun:test";
import { isTokenForm, makeToken } from "./opaque-token.ts";

test("any one character that was mistyped is seen", () => {
  const token = makeToken("greenhouse");
  expect(isTokenForm(token)).toBe(true);
  for (let at = 0; at < token.length; at++) {
    const other = token[at] === "x" ? "y" : "x";
    expect(isTokenForm(token.slice(0, at) + other + token.slice(at + 1))).toBe(false);
  }
});
