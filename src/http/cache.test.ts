/** Cached lists: served while their version stands, within a bounded size. */
import { expect, test } from "bun:test";
import { ResponseCache } from "./cache.ts";

const list = (body: string) => ({ status: 200, body });
const version = 2;

test("a list is served while its garden has the version that it was read at", () => {
  const cache = new ResponseCache();
  cache.add("plants", version, list("[]"));
  expect(cache.find("plants", version)?.body).toBe("[]");
  expect(cache.find("plants", version + 2)).toBeUndefined();
});

test("the oldest make room", () => {
  const cache = new ResponseCache();
  const response = list("x".repeat(60 * 1024));
  for (let key = 0; key < 200; key++) cache.add(`key ${key}`, version, response);
  expect(cache.find("key 0", version)).toBeUndefined();
  expect(cache.find("key 199", version)).toBeDefined();
});
