/** Which texts can name a user or a garden. */
import { expect, test } from "bun:test";
import { isIdentity } from "./caller.ts";

test.each([
  ["255 characters", "a".repeat(255), true],
  ["256 characters", "a".repeat(256), false],
  ["spaces, punctuation and other scripts", "auth0|the Ümit 園 🌱", true],
  ["an empty text", "", false],
  ["a space before", " a", false],
  ["a C1 control character", "a\u0085b", false],
  ["a lone surrogate", "a\ud800b", false],
])("whether %s can be a name: %#", (_case, text, expected) => {
  expect(isIdentity(text)).toBe(expected);
});
