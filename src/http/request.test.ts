/** What is read of a request, as far as the contract table does not have it. */
import { expect, test } from "bun:test";
import { makeToken } from "../auth/opaque-token.ts";
import { createRequestIds, readTarget } from "./request.ts";

test.each([
  ["http://[::1]:8080/plants/7", "/plants/7", ""],
  ["http://localhost/plants?a=/b?c", "/plants", "a=/b?c"],
  ["http://localhost/%zz?%zz", "/%zz", "%zz"],
  ["http://localhost//x://y", "//x://y", ""],
  ["/plants?limit=1", "/plants", "limit=1"],
  ["/a://b", "/a://b", ""],
  ["https://a.example", "/", ""],
])("%s has the path %s and the query %p", (url, path, query) => {
  expect(readTarget(url)).toEqual({ path, query });
});

test.each([
  ["is a token", makeToken()],
  ["holds a token", `Bearer-${makeToken()}`],
  ["is most of a token", makeToken().slice(0, 26)],
])("a request id that %s, which the log would show, is replaced", (_case, id) => {
  const given = createRequestIds()(new Headers({ "X-Request-Id": id }));
  expect(given).not.toBe(id);
  expect(given).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
});
