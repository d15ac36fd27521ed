/** Cached lists: served while their version stands, within a bounded size. */
import { expect, test } from "bun:test";
import { ResponseCache } from "./cache.ts";

test("a list is served only while its garden has the version that it was read at", () => {
  const cache = new ResponseCache();

  cache.add("plants", 2, { status: 200, body: "[]" });

  expect(cache.find("plants", 2)?.body).toBe("[]");
  expect(cache.find("plants", 4)).toBeUndefined();
});

test("the oldest lists make room for new ones", () => {
  const cache = new ResponseCache();
  const response = { status: 200, body: "x".repeat(60 * 1024) };

  for (let index = 0; index < 200; index++) cache.add(`list ${index}`, 2, response);

  expect(cache.find("list 0", 2)).toBeUndefined();
  expect(cache.find("list 199", 2)).toBeDefined();
});
