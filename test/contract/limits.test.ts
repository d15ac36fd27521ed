/** Rate limits and quotas: what callers learn, and what counts. */
import { afterAll, describe, expect, test } from "bun:test";
import { makeSigningKey, sign, startIssuer } from "../../testing/openid-issuer.ts";
import { bearer, onEachEngine, openGarden } from "./garden.ts";

const rate = { requests: 5, windowSeconds: 86_400 };
const policy = '"requests";q=5;w=86400';
const issuer = startIssuer();
afterAll(() => issuer.stop());

describe("a rate limit", () => {
  const usage = { rate, plantsMax: undefined };
  const garden = openGarden("SQLite", { jwt: issuer.trust, usage });
  const { call, reader, anonymous, atOnce } = garden;
  const send = (token: string, count: number, request = "GET /plants?limit=1") =>
    atOnce(count, request, undefined, bearer(token));
  const times = (count: number, status: number) => Array<number>(count).fill(status);

  test("is of a token, and not of its user or garden", async () => {
    for (const kind of ["write", "read"] as const) {
      expect(await send(await garden.token(kind), 6)).toEqual([...times(5, 200), 429]);
    }
  });

  test("is of a subject, whose JWTs are renewed", async () => {
    const key = await issuer.makeKey();
    const renew = (sub: string, jti: number) => sign(key, issuer.claims(Date.now(), { sub, jti }));
    for (let jti = 0; jti < 5; jti++) expect(await send(await renew("ann", jti), 1)).toEqual([200]);
    expect(await send(await renew("ann", 5), 1)).toEqual([429]);
    // A forged token uses up nothing.
    const forger = { ...(await makeSigningKey()), kid: key.kid };
    const forged = await sign(forger, issuer.claims(Date.now(), { sub: "bea" }));
    expect(await send(forged, 9)).toEqual(times(9, 401));
    expect(await send(await renew("bea", 1), 6)).toEqual([...times(5, 200), 429]);
  });

  test("counts every request with a good token, whatever becomes of it, and no other", async () => {
    const token = await garden.token("read");
    expect(await send("plant_unknown", 9)).toEqual(times(9, 401));
    expect(await send(token, 9, "OPTIONS /plants")).toEqual(times(9, 204));
    expect(await send(token, 9, "GET /nothing")).toEqual(times(9, 404));
    expect(await send(token, 1, "GET /plants?limit=x")).toEqual([400]);
    expect(await send(token, 1, "DELETE /plants/1")).toEqual([403]);
    expect(await send(token, 1, "HEAD /plants")).toEqual([200]);
    expect(await send(token, 3)).toEqual([200, 200, 429]);
    // The limit comes before the scope.
    expect(await send(token, 1, "DELETE /plants/1")).toEqual([429]);
  });

  test("shows in every response what is left, in cached ones too, and then when to retry", async () => {
    for (const remaining of [4, 3, 2]) {
      const { headers } = await call("GET /plants?limit=1", 200);
      expect(headers.get("RateLimit-Policy")).toBe(policy);
      expect(headers.get("RateLimit")).toBe(`"requests";r=${remaining};t=17280`);
    }
    const wrong = (await call("GET /plants?limit=x", 400)).headers;
    expect(wrong.get("RateLimit")).toContain('"requests";r=1;');
    expect(wrong.get("Retry-After")).toBeNull();
    const bulk = await call("POST /plants/bulk", 200, [{ name: "Fern" }, { name: "Ivy" }]);
    expect(bulk.headers.get("RateLimit")).toContain('"requests";r=0;');
    const refused = (await call("POST /plants", 429, { name: "Moss" })).headers;
    expect(refused.get("Retry-After")).toBe("17280");
    expect(refused.get("RateLimit")).toBe('"requests";r=0;t=17280');
    expect((await reader("GET /plants", 200)).json).toHaveLength(2);
    expect((await anonymous("GET /plants", 401)).headers.get("RateLimit-Policy")).toBeNull();
  });
});

onEachEngine(
  ({ call, anonymous, service }) => {
    const fern = { name: "Fern" };
    const policies = '"requests";q=9;w=60, "plants";q=3;qu="plants"';

    test("a quota counts each plant of a bulk, refuses what is beyond it until one is deleted, and no replacement", async () => {
      const { json, headers } = await call("POST /plants/bulk", 200, Array(5).fill(fern));
      expect(headers.get("RateLimit-Policy")).toBe(policies);
      const full = { status: 507, code: "storage-full", detail: expect.any(String) };
      expect(json).toEqual([...[1, 2, 3].map((id) => ({ status: 201, id })), full, full]);
      await call("PUT /plants/3", 200, { name: "Ivy" });
      await call("PUT /plants/4", 507, fern);
      const key = { "Idempotency-Key": "k" };
      const refused = (await call("POST /plants", 507, fern, key)).headers;
      expect(refused.get("RateLimit")).toMatch(/^"plants";r=0, "requests";r=5;t=\d+$/);
      expect(refused.get("Retry-After")).toBeNull();
      await call("DELETE /plants/2", 204);
      await call("POST /plants", 201, fern, key);
      // It is counted, and no failure of the service.
      const metrics = await anonymous("GET /metrics", 200);
      expect(metrics.headers.get("Content-Type")).toMatch(/^text\/plain\b/);
      expect(metrics.text).toContain('\nplantstore_refusals_total{limit="plants"} 4\n');
      expect(service.readLog()).toContain('"status":507');
      expect(service.readLog()).not.toContain("request failed");
    });
  },
  { usage: { rate: { requests: 9, windowSeconds: 60 }, plantsMax: 3 } },
);
