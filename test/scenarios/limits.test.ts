/** Rate limits and quotas through the whole service: what callers learn, and nothing when off. */
import { afterAll, describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { makeSigningKey, sign, startIssuer } from "../openid-issuer.ts";
import { checkHeaders, engines, openWorld, type World } from "./scenario.ts";

const rate = { requests: 5, windowSeconds: 86_400 };
const policy = '"requests";q=5;w=86400';
const issuer = startIssuer();
afterAll(() => issuer.stop());

async function createMany(world: World, user: string, count: number): Promise<Response> {
  const token = await world.makeToken({ user });
  const plants = Array.from({ length: count }, () => ({ name: "Fern" }));
  return world.call(token, "POST /plants/bulk", plants);
}

describe("a rate limit", () => {
  const world = openWorld("SQLite", { jwt: issuer.trust, usage: { rate, plantsMax: undefined } });

  /** Sends requests at once, and counts the responses by status. */
  async function send(token: string, count: number, request = "GET /plants?limit=1") {
    const responses = await Promise.all(
      Array.from({ length: count }, () => world.call(token, request)),
    );
    const statuses: Record<number, number> = {};
    for (const { status } of responses) statuses[status] = (statuses[status] ?? 0) + 1;
    return statuses;
  }

  test("is of a token, and not of its user or garden", async () => {
    for (let tokens = 0; tokens < 2; tokens++) {
      const token = await world.makeToken({ user: "bob" });
      expect(await send(token, 6)).toEqual({ 200: 5, 429: 1 });
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
    const token = await world.makeToken({ user: "carol", scope: "read" });
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

  test("shows in every response what is left, cached ones included", async () => {
    const token = await world.makeToken({ user: "dora" });
    for (const remaining of [4, 3, 2]) {
      const response = await world.call(token, "GET /plants?limit=1");
      const left = new RegExp(`^"requests";r=${remaining};t=172[78]\\d$`);
      checkHeaders(response.headers, { "RateLimit-Policy": policy, RateLimit: left });
    }
    const refused = await world.call(token, "GET /plants?limit=x");
    checkHeaders(refused.headers, { RateLimit: /^"requests";r=1;/, "Retry-After": null });
    const created = await world.call(token, "POST /plants", { name: "Fern" });
    checkHeaders(created.headers, { "RateLimit-Policy": policy, RateLimit: /^"requests";r=0;/ });
  });

  test("counts many plants at once as one request", async () => {
    const response = await createMany(world, "fern", 9);
    expect(response.status).toBe(200);
    checkHeaders(response.headers, { RateLimit: /^"requests";r=4;/ });
  });

  test("refuses with a problem that says when to retry", async () => {
    const token = await world.makeToken({ user: "emil" });
    await send(token, 5);
    const response = await world.call(token, "POST /plants", { name: "Fern" });
    expect(response.status).toBe(429);
    const seconds = response.headers.get("retry-after") ?? "";
    expect(Number(seconds)).toBeWithin(17_270, 17_281);
    checkHeaders(response.headers, {
      "RateLimit-Policy": policy,
      RateLimit: `"requests";r=0;t=${seconds}`,
      "Cache-Control": "no-store",
    });
    expect(await response.json()).toMatchObject({
      type: "urn:plantstore:problem:rate-limited",
      status: 429,
    });
    expect(await world.storage.list("emil", undefined, 10)).toEqual([]);
  });
});

describe.each(engines)("a quota on %s", (engine) => {
  let logged = "";
  const log = createLog("json", (lines) => {
    logged += lines;
  });
  const world = openWorld(engine, { usage: { rate: undefined, plantsMax: 3 } }, log);
  const quota = '"plants";q=3;qu="plants"';

  test("lets a garden hold that many plants, and refuses the next until one is deleted", async () => {
    const token = await world.makeToken({ user: "ann" });
    for (const id of [1, 2, 3]) {
      const response = await world.call(token, "POST /plants", { name: "Fern", id });
      expect(response.status).toBe(201);
      checkHeaders(response.headers, { "RateLimit-Policy": quota, RateLimit: null });
    }
    const refused = await world.call(token, "POST /plants", { name: "Fern" });
    expect(refused.status).toBe(507);
    checkHeaders(refused.headers, {
      "RateLimit-Policy": quota,
      RateLimit: '"plants";r=0',
      "Retry-After": null,
    });
    expect(await refused.json()).toMatchObject({ type: "urn:plantstore:problem:storage-full" });
    expect((await world.call(token, "DELETE /plants/2")).status).toBe(204);
    expect((await world.call(token, "POST /plants", { name: "Fern" })).status).toBe(201);

    // It is counted, and no failure of the service.
    const metrics = await (await world.fetch("GET /metrics")).text();
    expect(metrics).toContain('\nplantstore_refusals_total{limit="plants"} 1\n');
    log.flush();
    expect(logged).toContain('"status":507');
    expect(logged).not.toContain("request failed");
  });

  test("counts each plant of a bulk, and refuses those beyond it", async () => {
    const results = await (await createMany(world, "bob", 5)).json();
    expect(results.map(({ status }: { status: number }) => status)).toEqual([
      201, 201, 201, 507, 507,
    ]);
    expect(results[3]).toMatchObject({ status: 507, code: "storage-full" });
  });
});

describe("both limits", () => {
  const world = openWorld("SQLite", { usage: { rate, plantsMax: 1 } });

  test("are shown together", async () => {
    const token = await world.makeToken({ user: "ann" });
    await world.call(token, "POST /plants", { name: "Fern" });
    const refused = await world.call(token, "POST /plants", { name: "Fern" });
    checkHeaders(refused.headers, {
      "RateLimit-Policy": `${policy}, "plants";q=1;qu="plants"`,
      RateLimit: /^"plants";r=0, "requests";r=3;t=\d+$/,
    });
  });
});
