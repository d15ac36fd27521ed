/** Keys that are withdrawn while a token is checked: its caller is used, and not remembered. */
import { afterAll, beforeEach, expect, spyOn, test } from "bun:test";
import { openInquiry } from "../../test/openid-inquiry.ts";
import { sign } from "../../test/openid-issuer.ts";
import { isJwtForm, JsonWebTokens } from "./json-web-tokens.ts";

const { issuer, key, clock, good, reset, stop } = await openInquiry();

beforeEach(reset);
afterAll(stop);

test.each([
  ["looked up", "importKey"],
  ["used", "verify"],
] as const)(
  "a key that is withdrawn while it is being %s is not relied on again",
  async (_, step) => {
    const jwts = new JsonWebTokens(issuer.trust, () => clock.nowMs);
    await jwts.refreshKeys();
    const token = await sign(key, good());
    const newer = await issuer.makeKey();
    const { subtle } = crypto;
    const original = subtle[step].bind(subtle) as (...values: unknown[]) => Promise<never>;
    const spy = spyOn(subtle, step).mockImplementation(async (...values: unknown[]) => {
      spy.mockRestore();
      issuer.published = [newer.publicJwk];
      await jwts.refreshKeys();
      return original(...values);
    });
    expect(await jwts.check(token)).toMatchObject({ user: "alice" });
    expect(jwts.recall(token, clock.nowMs)).toBeUndefined();
    expect(await jwts.check(token)).toBeUndefined();
  },
);

test("a text of 8,192 characters may be a token, and a longer one is none", () => {
  const longest = `a.b.${"c".repeat(8_188)}`;
  expect([isJwtForm(longest), isJwtForm(`${longest}c`)]).toEqual([true, false]);
});
