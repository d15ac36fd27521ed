/** Which texts can name a user or a garden. */
import { expect, test } from "bun:test";
import { isIdentity } from "./caller.ts";

test.each([
  ["255 characters", "a".repeat(255)],
  ["spaces inside", "the old greenhouse"],
  ["other scripts and emoji", "Ümit 園 🌱"],
  ["punctuation", "auth0|5f7c/x@example.org"],
])("%s can be a name", (_case, text) => {
  expect(isIdentity(text)).toBe(true);
});

test.each([
  ["an empty text", ""],
  ["256 characters", "a".repeat(256)],
  ["a space before", " a"],
  ["a line break inside", "a\nb"],
  ["a C1 control character", "a\u0085b"],
  ["a lone surrogate", "a\ud800b"],
])("%s cannot be a name", (_case, text) => {
  expect(isIdentity(text)).toBe(false);
});
