/** Request ids and trace ids of clients, as far as the contract table does not have them. */
import { expect, test } from "bun:test";
import { makeToken } from "../auth/opaque-token.ts";
import { createRequestIds, readTraceId } from "./arrival.ts";

test.each([
  ["is a token", makeToken()],
  ["holds a token", `Bearer-${makeToken()}`],
  ["is most of a token", makeToken().slice(0, 26)],
])("a request id that %s, which the log would show, is replaced", (_case, id) => {
  const given = createRequestIds()(new Headers({ "X-Request-Id": id }));
  expect(given).not.toBe(id);
  expect(given).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
});

test.each([
  ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"],
  ["cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-x", "4bf92f3577b34da6a3ce929d0e0e4736"],
  [null, undefined],
  ["00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", undefined],
  ["00-00000000000000000000000000000000-00f067aa0ba902b7-01", undefined],
  ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b70-01", undefined],
])("the trace id of traceparent %p is %p", (header, expected) => {
  expect(readTraceId(header)).toBe(expected);
});
