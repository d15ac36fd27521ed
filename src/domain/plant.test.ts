/** What a plant may be: each field's limits from both sides, and what is said of a fault. */
import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { plantDraftSchema, plantIdMax, plantIdMin } from "./plant.ts";

function faultsOf(input: unknown): string[] {
  const parsed = v.safeParse(plantDraftSchema, input, { abortPipeEarly: true });
  if (parsed.success) return [];
  return parsed.issues.map((issue) => `${issue.path?.[0]?.key ?? ""}: ${issue.message}`);
}

function accepted(input: unknown): unknown {
  return v.parse(plantDraftSchema, input);
}

describe("a plant's name", () => {
  test.each([
    ["one character", "a"],
    ["200 characters", "a".repeat(200)],
    ["200 code points of two units each", "🌱".repeat(200)],
    ["200 code points of mixed widths", `a${"🌱".repeat(199)}`],
    ["white space around a character", "  a\t"],
    ["combining marks, which are not normalised", "e\u0301"],
    ["quotes, control characters and a slash", '"\n\u0001/\\'],
  ])("may have %s, and stays as sent", (_case, name) => {
    expect(accepted({ name })).toEqual({ name, tag: "" });
  });

  test.each([
    ["empty", "", "must not be empty"],
    ["of 201 characters", "a".repeat(201), "must have at most 200 characters"],
    ["of 201 emoji", "🌱".repeat(201), "must have at most 200 characters"],
    ["of 201 code points in 202 units", `${"a".repeat(200)}🌱`, "must have at most 200 characters"],
    ["of spaces only", "   ", "must not be only white space"],
    ["of other white space only", "\t\n\r\u00a0\u2003\u3000\ufeff", "must not be only white space"],
    ["with U+0000", "a\0b", "must not hold the character U+0000"],
    ["with a lone high surrogate", "a\ud83c", "must not hold a lone surrogate"],
    ["with a lone low surrogate", "\udf31a", "must not hold a lone surrogate"],
    ["that is null", null, "must be a string"],
    ["that is a number", 7, "must be a string"],
    ["that is an array", ["a"], "must be a string"],
  ])("is refused when it is one %s", (_case, name, message) => {
    const faults = faultsOf({ name });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toStartWith(`name: ${message}`);
  });

  test("is required", () => {
    expect(faultsOf({ tag: "x" })).toEqual(["name: is required"]);
  });
});

describe("a plant's tag", () => {
  test.each([
    ["nothing in it", ""],
    ["white space only", " \n"],
    ["100 characters", "b".repeat(100)],
    ["100 emoji", "🪴".repeat(100)],
  ])("may have %s, and stays as sent", (_case, tag) => {
    expect(accepted({ name: "a", tag })).toEqual({ name: "a", tag });
  });

  test.each([
    ["of 101 characters", "b".repeat(101), "must have at most 100 characters"],
    ["of 101 emoji", "🪴".repeat(101), "must have at most 100 characters"],
    ["with U+0000", "\0", "must not hold the character U+0000"],
    ["with a lone surrogate", "\ud800", "must not hold a lone surrogate"],
    ["that is null, which is not absent", null, "must be a string"],
    ["that is an object", {}, "must be a string"],
  ])("is refused when it is one %s", (_case, tag, message) => {
    const faults = faultsOf({ name: "a", tag });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toStartWith(`tag: ${message}`);
  });

  test("is empty when it is absent", () => {
    expect(accepted({ name: "a" })).toEqual({ name: "a", tag: "" });
  });
});

describe("a plant's id", () => {
  test.each([[plantIdMin], [-1n], [0n], [7n], [9_007_199_254_740_993n], [plantIdMax]])(
    "may be %p",
    (id) => {
      expect(accepted({ name: "a", id })).toEqual({ name: "a", tag: "", id });
    },
  );

  test.each([
    ["below the 64-bit range", plantIdMin - 1n, "must not be less than -9223372036854775808"],
    ["above the 64-bit range", plantIdMax + 1n, "must not be more than 9223372036854775807"],
    ["a fraction", 1.5, "must be an integer"],
    ["a number that was not read exactly", 7, "must be an integer"],
    ["text", "7", "must be an integer"],
    ["true", true, "must be an integer"],
    ["null, which is not absent", null, "must be an integer"],
  ])("is refused when it is %s", (_case, id, message) => {
    expect(faultsOf({ name: "a", id })).toEqual([`id: ${message}`]);
  });
});

test("reports the fault of every field at once", () => {
  expect(faultsOf({ name: "", tag: 1, id: "x" })).toEqual([
    "name: must not be empty",
    "tag: must be a string",
    "id: must be an integer",
  ]);
});

test.each([[null], ["x"], [7], [true]])("refuses %p in the place of a plant", (input) => {
  expect(faultsOf(input)).toEqual([": must be one JSON object"]);
});
