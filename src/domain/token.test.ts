/** The state of a token at a moment: revoked before expired, expired from the very moment on. */
import { expect, test } from "bun:test";
import { type TokenRecord, type TokenState, tokenState } from "./token.ts";

const token: TokenRecord = {
  id: "t1",
  hash: "00",
  user: "alice",
  garden: "alice",
  scope: "read",
  note: "",
  createdAtMs: 0,
  expiresAtMs: undefined,
  revokedAtMs: undefined,
  lastUsedAtMs: undefined,
};

test.each<[string, Partial<TokenRecord>, TokenState]>([
  ["without an expiry", {}, "active"],
  ["one moment before its expiry", { expiresAtMs: 1001 }, "active"],
  ["at its expiry", { expiresAtMs: 1000 }, "expired"],
  ["after its expiry", { expiresAtMs: 999 }, "expired"],
  ["with an expiry at the start of time", { expiresAtMs: 0 }, "expired"],
  ["revoked", { revokedAtMs: 5 }, "revoked"],
  ["revoked at the start of time", { revokedAtMs: 0 }, "revoked"],
  ["revoked, at a time to come", { revokedAtMs: 2000 }, "revoked"],
  ["revoked and expired", { revokedAtMs: 5, expiresAtMs: 10 }, "revoked"],
])("a token %s is as expected", (_case, change, expected) => {
  expect(tokenState({ ...token, ...change }, 1000)).toBe(expected);
});
