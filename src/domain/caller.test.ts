/** What a scope permits, and which texts can name a user or a garden. */
import { expect, test } from "bun:test";
import { isIdentity, permits, type Scope } from "./caller.ts";

test.each<[Scope, Scope, boolean]>([
  ["read", "read", true],
  ["read", "write", false],
  ["write", "read", true],
  ["write", "write", true],
])("with the scope %s, what needs %s is permitted: %p", (scope, needed, expected) => {
  expect(permits({ credential: "t", user: "alice", garden: "alice", scope }, needed)).toBe(
    expected,
  );
});

test.each([
  ["one character", "a"],
  ["255 characters", "a".repeat(255)],
  ["spaces inside", "the old greenhouse"],
  ["other scripts and emoji", "Ümit 園 🌱"],
  ["punctuation", "auth0|5f7c/x@example.org"],
])("takes %s for a name", (_case, text) => {
  expect(isIdentity(text)).toBe(true);
});

test.each([
  ["nothing", ""],
  ["256 characters", "a".repeat(256)],
  ["a space before", " a"],
  ["a space behind", "a "],
  ["only a space", " "],
  ["a line break inside", "a\nb"],
  ["U+0000", "a\0b"],
  ["U+007F", "a\u007fb"],
  ["a C1 control character", "a\u0085b"],
  ["a lone surrogate", "a\ud800b"],
])("refuses %s for a name", (_case, text) => {
  expect(isIdentity(text)).toBe(false);
});
