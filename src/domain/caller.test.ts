/** Which texts can name a user or a garden. */
import { expect, test } from "bun:test";
import { isIdentity } from "./caller.ts";

test.each([
  { description: "255 characters", text: "a".repeat(255) },
  { description: "spaces, punctuation and other scripts", text: "auth0|the Ümit 園 🌱" },
])("a text with $description can be a name", ({ text }) => {
  expect(isIdentity(text)).toBe(true);
});

test.each([
  { description: "256 characters", text: "a".repeat(256) },
  { description: "no characters", text: "" },
  { description: "a space before it", text: " a" },
  { description: "a C1 control character", text: "a\u0085b" },
  { description: "a lone surrogate", text: "a\ud800b" },
])("a text with $description can't be a name", ({ text }) => {
  expect(isIdentity(text)).toBe(false);
});
