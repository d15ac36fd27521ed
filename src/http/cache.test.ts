/** Cached lists: served while their version stands, within a bounded size. */
import { beforeEach, expect, test } from "bun:test";
import { ResponseCache } from "./cache.ts";

let cache: ResponseCache;

beforeEach(() => {
  cache = new ResponseCache();
});

const list = (body: string) => ({ status: 200, body });

test("a response is found under its key while its version stands", () => {
  cache.add("a", 1, list("[]"));
  expect(cache.find("a", 1)?.body).toBe("[]");
  expect(cache.find("b", 1)).toBeUndefined();
  expect(cache.find("a", 2)).toBeUndefined();
  expect(cache.find("a", undefined)).toBeUndefined();
  cache.add("a", 2, list("[2]"));
  expect(cache.find("a", 2)?.body).toBe("[2]");
});

test("a response is wanted when it is asked for again, also after a change", () => {
  expect([cache.isWanted("a", 1), cache.isWanted("b", 1)]).toEqual([false, false]);
  expect(cache.isWanted("a", 1)).toBe(true);
  cache.add("a", 1, list("[]"));
  expect(cache.isWanted("a", 2)).toBe(true);
});

test("a response is not wanted where the storage has no versions", () => {
  expect([cache.isWanted("a", undefined), cache.isWanted("a", undefined)]).toEqual([false, false]);
});

test("a very long key is never wanted, and others are forgotten among very many", () => {
  const longest = "k".repeat(256);
  expect([cache.isWanted(longest, 1), cache.isWanted(longest, 1)]).toEqual([false, true]);
  expect([cache.isWanted(`${longest}k`, 1), cache.isWanted(`${longest}k`, 1)]).toEqual([
    false,
    false,
  ]);
  for (let key = 1; key < 4_096; key++) cache.isWanted(`key ${key}`, 1);
  expect(cache.isWanted(longest, 1)).toBe(true);
  cache.isWanted("one more", 1);
  expect(cache.isWanted(longest, 1)).toBe(false);
});

test("streams, very long bodies and bodies without a version are not cached", () => {
  cache.add("a", 1, { status: 200, body: { next: async () => undefined, close() {} } });
  cache.add("b", 1, list("x".repeat(64 * 1024 + 1)));
  cache.add("c", undefined, list("[]"));
  for (const key of ["a", "b", "c"]) expect(cache.find(key, 1)).toBeUndefined();
  cache.add("d", 1, list("x".repeat(64 * 1024)));
  expect(cache.find("d", 1)?.body).toHaveLength(64 * 1024);
});

test.each([
  ["long responses", 60 * 1024, 200],
  ["very many short ones", 2, 9_000],
])("the oldest of %s make room", (_, characters, count) => {
  for (let key = 0; key < count; key++) cache.add(`key ${key}`, 1, list("x".repeat(characters)));
  expect(cache.find("key 0", 1)).toBeUndefined();
  expect(cache.find(`key ${count - 1}`, 1)).toBeDefined();
});

test("a response takes its room once, however often it is added", () => {
  cache.add("a", 1, list("[]"));
  for (let time = 0; time < 200; time++) cache.add("b", time, list("x".repeat(60 * 1024)));
  expect(cache.find("a", 1)).toBeDefined();
});
