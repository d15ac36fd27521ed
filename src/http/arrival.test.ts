/** Request ids of clients, as far as the contract table does not have them. */
import { expect, test } from "bun:test";
import { makeToken } from "../auth/opaque-token.ts";
import { createRequestIds } from "./arrival.ts";

test.each([
  ["is a token", makeToken()],
  ["holds a token", `Bearer-${makeToken()}`],
  ["is most of a token", makeToken().slice(0, 26)],
])("a request id that %s, which the log would show, is replaced", (_case, id) => {
  const given = createRequestIds()(new Headers({ "X-Request-Id": id }));
  expect(given).not.toBe(id);
  expect(given).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
});
