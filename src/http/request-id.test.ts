/** The id of a request: the caller's own from both sides of its limits, else a new one. */
import { expect, test } from "bun:test";
import { makeToken } from "../auth/opaque-token.ts";
import { createRequestIds } from "./request.ts";

const form = /^[A-Za-z0-9._-]{1,128}$/;

test("keeps the caller's own id, also one that begins like a token", () => {
  const id = makeToken().slice(0, 25);
  expect(createRequestIds()(new Headers({ "X-Request-Id": id }))).toBe(id);
});

test.each([
  ["that is a token", makeToken()],
  ["that holds a token", `Bearer-${makeToken()}`],
  ["that is most of a token", makeToken().slice(0, 26)],
])("gives a new id in the place of one %s", (_case, id) => {
  const given = createRequestIds()(new Headers({ "X-Request-Id": id }));
  expect(given).not.toBe(id);
  expect(given).toMatch(form);
});

test("gives every request another id, also from another process", () => {
  const processes = [createRequestIds(), createRequestIds()];
  const ids = processes.flatMap((next) => Array.from({ length: 500 }, () => next(new Headers())));
  expect(new Set(ids).size).toBe(1000);
  for (const id of ids) expect(id).toMatch(form);
});
