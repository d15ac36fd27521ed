/** Cached lists: served while their version stands, within a bounded size. */
import { beforeEach, expect, test } from "bun:test";
import { ResponseCache } from "./cache.ts";

let cache: ResponseCache;

beforeEach(() => {
  cache = new ResponseCache();
});

const list = (body: string) => ({ status: 200, body });
const version = (all: number, withoutAppends = all) => ({ all, withoutAppends });

test("nothing is cached or found while a commit is under way that may change it", () => {
  cache.add("a", version(2), list("[]"));
  expect(cache.find("a", { all: undefined, withoutAppends: 2 })).toBeUndefined();
  cache.add("b", { all: undefined, withoutAppends: 2 }, list("[]"));
  expect(cache.find("b", { all: undefined, withoutAppends: 2 })).toBeUndefined();
  const page = { ...list("[1]"), isBeforeAppends: true };
  cache.add("c", { all: undefined, withoutAppends: 2 }, page);
  expect(cache.find("c", { all: undefined, withoutAppends: 2 })?.body).toBe("[1]");
});

test.each([
  ["long responses", 60 * 1024, 200],
  ["very many short ones", 2, 9_000],
])("the oldest of %s make room", (_, characters, count) => {
  const response = list("x".repeat(characters));
  for (let key = 0; key < count; key++) cache.add(`key ${key}`, version(1), response);
  expect(cache.find("key 0", version(1))).toBeUndefined();
  expect(cache.find(`key ${count - 1}`, version(1))).toBeDefined();
});
