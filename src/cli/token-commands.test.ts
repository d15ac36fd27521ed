/** When a token ends: spans of time and dates, from both sides of now. */
import { expect, test } from "bun:test";
import { expiry } from "./token-commands.ts";

const nowMs = Date.UTC(2030, 5, 15, 12, 0, 0);

const { parse } = expiry(nowMs);

test.each([
  ["1s", 1_000],
  ["90m", 90 * 60_000],
  ["12h", 12 * 3_600_000],
  ["30d", 30 * 86_400_000],
  ["999999w", 999_999 * 7 * 86_400_000],
])("%s is that long from now", (text, spanMs) => {
  const expiresAtMs = parse(text);
  expect(expiresAtMs).toBe(nowMs + spanMs);
  expect(() => new Date(expiresAtMs ?? 0).toISOString()).not.toThrow();
});

test.each([
  ["2030-06-16", Date.UTC(2030, 5, 16)],
  ["2030-06-15T12:00:00.001Z", nowMs + 1],
  ["2030-06-15T14:00:01+02:00", nowMs + 1_000],
  ["9999-12-31", Date.UTC(9999, 11, 31)],
])("%s is that date", (text, expected) => {
  expect(parse(text)).toBe(expected);
});

test.each([
  ["nothing", ""],
  ["no time at all", "0d"],
  ["a number without a unit", "30"],
  ["an unknown unit", "30y"],
  ["a fraction", "1.5d"],
  ["more than six digits", "1000000d"],
  ["a date that has passed", "2030-06-14"],
  ["this very moment", "2030-06-15T12:00:00.000Z"],
  ["an hour that doesn't exist", "2031-01-01T25:00:00Z"],
  ["a time without a zone", "2031-01-01T12:00:00"],
])("refuses %s", (_case, text) => {
  expect(parse(text)).toBeUndefined();
});
