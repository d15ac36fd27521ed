/** Which texts can name a user or a garden. */
import { expect, test } from "bun:test";
import { isIdentity } from "./caller.ts";

test.each([
  ["255 characters", "a".repeat(255), true],
  ["spaces inside", "the old greenhouse", true],
  ["other scripts and emoji", "Ümit 園 🌱", true],
  ["punctuation", "auth0|5f7c/x@example.org", true],
  ["an empty text", "", false],
  ["256 characters", "a".repeat(256), false],
  ["a space before", " a", false],
  ["a line break inside", "a\nb", false],
  ["a C1 control character", "a\u0085b", false],
  ["a lone surrogate", "a\ud800b", false],
])("whether %s can be a name: %#", (_case, text, expected) => {
  expect(isIdentity(text)).toBe(expected);
});
