/** Rate limits and quotas: what callers learn, and what counts. */
import { afterAll, afterEach, beforeEach, describe, expect, mock, spyOn, test } from "bun:test";
import { makeSigningKey, sign, startIssuer } from "../openid-issuer.ts";
import { bearer, engines, openGarden } from "./garden.ts";

const rate = { requests: 5, windowSeconds: 86_400 };
const policy = '"requests";q=5;w=86400';
const issuer = startIssuer();
afterAll(() => issuer.stop());

/** Time stands still, so that no request waits too long on a busy machine and is sent twice. */
beforeEach(() => {
  spyOn(performance, "now").mockReturnValue(performance.now());
});
afterEach(() => mock.restore());

describe("a rate limit", () => {
  const usage = { rate, plantsMax: undefined };
  const garden = openGarden("SQLite", { jwt: issuer.trust, usage });
  const { call, reader, anonymous } = garden;

  /** Sends requests at once, and counts the responses by status. */
  async function send(token: string, count: number, request = "GET /plants?limit=1") {
    const ask = () => garden.fetch(request, undefined, bearer(token));
    const responses = await Promise.all(Array.from({ length: count }, ask));
    const counts: Record<number, number> = {};
    for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  test("is of a token, and not of its user or garden", async () => {
    for (const kind of ["write", "read"] as const) {
      expect(await send(await garden.token(kind), 6)).toEqual({ 200: 5, 429: 1 });
    }
  });

  test("is of a subject, whose JWTs are renewed", async () => {
    const key = await issuer.makeKey();
    const renew = (sub: string, jti: number) => sign(key, issuer.claims(Date.now(), { sub, jti }));
    for (let jti = 0; jti < 5; jti++) {
      expect(await send(await renew("ann", jti), 1)).toEqual({ 200: 1 });
    }
    expect(await send(await renew("ann", 5), 1)).toEqual({ 429: 1 });
    // A forged token uses up nothing.
    const forger = { ...(await makeSigningKey()), kid: key.kid };
    const forged = await sign(forger, issuer.claims(Date.now(), { sub: "bea" }));
    expect(await send(forged, 9)).toEqual({ 401: 9 });
    expect(await send(await renew("bea", 1), 9)).toEqual({ 200: 5, 429: 4 });
  });

  test("counts every request with a good token, whatever becomes of it, and no other", async () => {
    const token = await garden.token("read");
    expect(await send("plant_unknown", 9)).toEqual({ 401: 9 });
    expect(await send(token, 9, "OPTIONS /plants")).toEqual({ 204: 9 });
    expect(await send(token, 9, "GET /nothing")).toEqual({ 404: 9 });
    expect(await send(token, 1, "GET /plants?limit=x")).toEqual({ 400: 1 });
    expect(await send(token, 1, "DELETE /plants/1")).toEqual({ 403: 1 });
    expect(await send(token, 1, "HEAD /plants")).toEqual({ 200: 1 });
    expect(await send(token, 3)).toEqual({ 200: 2, 429: 1 });
    // The limit comes before the scope.
    expect(await send(token, 1, "DELETE /plants/1")).toEqual({ 429: 1 });
  });

  test("shows in every response what is left, in cached ones too, and counts a bulk once", async () => {
    for (const remaining of [4, 3, 2]) {
      const { headers } = await call("GET /plants?limit=1", 200);
      expect(headers.get("RateLimit-Policy")).toBe(policy);
      expect(headers.get("RateLimit")).toBe(`"requests";r=${remaining};t=17280`);
    }
    const { headers } = await call("GET /plants?limit=x", 400);
    expect([headers.get("RateLimit"), headers.get("Retry-After")]).toEqual([
      ...[expect.stringContaining('"requests";r=1;'), null],
    ]);
    const bulk = await call("POST /plants/bulk", 200, [{ name: "Fern" }, { name: "Ivy" }]);
    expect(bulk.header("RateLimit")).toContain('"requests";r=0;');
    expect((await anonymous("GET /plants", 401)).header("RateLimit-Policy")).toBeNull();
  });

  test("refuses with a problem that says when to retry, and nothing is done", async () => {
    await send(await garden.token(), 5);
    const { headers } = await call("POST /plants", 429, { name: "Fern" });
    expect(headers.get("Retry-After")).toBe("17280");
    expect(headers.get("RateLimit")).toBe('"requests";r=0;t=17280');
    expect((await reader("GET /plants", 200)).json).toEqual([]);
  });
});

describe.each(engines)("a quota on %s", (engine) => {
  const { call, anonymous, service } = openGarden(engine, { usage: { rate, plantsMax: 3 } });
  const fern = { name: "Fern" };

  test("lets a garden hold that many plants, and refuses the next until one is deleted", async () => {
    const key = { "Idempotency-Key": "k" };
    const created = await call("POST /plants/bulk", 200, [fern, fern, fern]);
    expect(created.header("RateLimit-Policy")).toBe(`${policy}, "plants";q=3;qu="plants"`);
    const { headers } = await call("POST /plants", 507, fern, key);
    expect(headers.get("RateLimit")).toMatch(/^"plants";r=0, "requests";r=3;t=\d+$/);
    expect(headers.get("Retry-After")).toBeNull();
    await call("PUT /plants/4", 507, fern);
    await call("DELETE /plants/2", 204);
    await call("POST /plants", 201, fern, key);
    // It is counted, and no failure of the service.
    const { text } = await anonymous("GET /metrics", 200);
    expect(text).toContain('\nplantstore_refusals_total{limit="plants"} 2\n');
    expect(service.readLog()).toContain('"status":507');
    expect(service.readLog()).not.toContain("request failed");
  });

  test("counts each plant of a bulk, refuses those beyond it, and never a replacement", async () => {
    const { json } = await call("POST /plants/bulk", 200, Array(5).fill(fern));
    const full = { status: 507, code: "storage-full", detail: expect.any(String) };
    expect(json).toEqual([...[1, 2, 3].map((id) => ({ status: 201, id })), full, full]);
    await call("PUT /plants/3", 200, { name: "Ivy" });
  });
});
