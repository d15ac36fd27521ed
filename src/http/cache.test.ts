/** Cached lists: served while their version stands, within a bounded size. */
import { expect, test } from "bun:test";
import { ResponseCache } from "./cache.ts";

const list = (body: string) => ({ status: 200, body });
const version = { all: 2, withoutAppends: 2 };

test("nothing is cached or found while a commit is under way that may change it", () => {
  const cache = new ResponseCache();
  const changing = { all: undefined, withoutAppends: 2 };
  cache.add("cached before", version, list("[]"));
  cache.add("read meanwhile", changing, list("[]"));
  cache.add("before appends", changing, { ...list("[1]"), isBeforeAppends: true });
  const keys = ["cached before", "read meanwhile", "before appends"];
  const found = keys.map((key) => cache.find(key, changing)?.body);
  expect(found).toEqual([undefined, undefined, "[1]"]);
});

test("the oldest make room", () => {
  const cache = new ResponseCache();
  const response = list("x".repeat(60 * 1024));
  for (let key = 0; key < 200; key++) cache.add(`key ${key}`, version, response);
  expect(cache.find("key 0", version)).toBeUndefined();
  expect(cache.find("key 199", version)).toBeDefined();
});
