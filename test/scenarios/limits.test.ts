/**
 * Rate limits and quotas: what fits and what does not, what callers are told, and nothing of it
 * when off.
 */
import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { makeSigningKey, sign, startIssuer } from "../openid-issuer.ts";
import { checkHeaders, engines, openWorld, type World } from "./scenario.ts";

const rate = { requests: 5, windowSeconds: 86_400 };
const policy = '"requests";q=5;w=86400';

/** The statuses of requests that are sent at once, how often each came. */
async function send(world: World, token: string, count: number, request = "GET /plants?limit=1") {
  const headers = { authorization: `Bearer ${token}` };
  const responses = await Promise.all(
    Array.from({ length: count }, () => world.fetch(request, { headers })),
  );
  const statuses: Record<number, number> = {};
  for (const { status } of responses) statuses[status] = (statuses[status] ?? 0) + 1;
  return statuses;
}

async function create(world: World, token: string, draft: object, key?: string) {
  const headers = new Headers({
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
  });
  if (key !== undefined) headers.set("idempotency-key", key);
  return world.fetch("POST /plants", { headers, body: JSON.stringify(draft) });
}

describe.each(engines)("a rate limit on %s", (engine) => {
  const world = openWorld(engine, { usage: { rate, plantsMax: undefined } });

  test("is of a token, and not of its user or garden", async () => {
    const [first, second] = [
      await world.makeToken({ user: "bob" }),
      await world.makeToken({ user: "bob" }),
    ];
    expect(await send(world, first, 6)).toEqual({ 200: 5, 429: 1 });
    expect(await send(world, second, 6)).toEqual({ 200: 5, 429: 1 });
  });

  test("counts every request with a good token, whatever becomes of it, and no other", async () => {
    const token = await world.makeToken({ user: "carol", scope: "read" });
    expect(await send(world, "plant_unknown", 9)).toEqual({ 401: 9 });
    expect(await send(world, token, 9, "OPTIONS /plants")).toEqual({ 204: 9 });
    expect(await send(world, token, 9, "GET /nothing")).toEqual({ 404: 9 });
    expect(await send(world, token, 1, "GET /plants?limit=x")).toEqual({ 400: 1 });
    expect(await send(world, token, 1, "DELETE /plants/1")).toEqual({ 403: 1 });
    expect(await send(world, token, 1, "HEAD /plants")).toEqual({ 200: 1 });
    expect(await send(world, token, 3)).toEqual({ 200: 2, 429: 1 });
    // The limit comes before the scope.
    expect(await send(world, token, 1, "DELETE /plants/1")).toEqual({ 429: 1 });
  });

  test("tells with every answer what is left, also with answers that are kept", async () => {
    const token = await world.makeToken({ user: "dora" });
    const headers = { authorization: `Bearer ${token}` };
    for (const remaining of [4, 3, 2]) {
      const response = await world.fetch("GET /plants?limit=1", { headers });
      const left = new RegExp(`^"requests";r=${remaining};t=172[78]\\d$`);
      checkHeaders(response.headers, { "RateLimit-Policy": policy, RateLimit: left });
    }
    const refused = await world.fetch("GET /plants?limit=x", { headers });
    checkHeaders(refused.headers, { RateLimit: /^"requests";r=1;/, "Retry-After": null });
    const created = await create(world, token, { name: "Fern" });
    checkHeaders(created.headers, { "RateLimit-Policy": policy, RateLimit: /^"requests";r=0;/ });
  });

  test("refuses with a problem that says when to come back", async () => {
    const token = await world.makeToken({ user: "emil" });
    await send(world, token, 5);
    const response = await create(world, token, { name: "Fern" });
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

  test("says nothing of limits to whoever has no token", async () => {
    const response = await world.fetch("GET /plants");
    checkHeaders(response.headers, { "RateLimit-Policy": null, RateLimit: null });
    const health = await world.fetch("GET /healthz");
    checkHeaders(health.headers, { "RateLimit-Policy": null, RateLimit: null });
  });
});

describe("a rate limit", () => {
  const short = openWorld("SQLite", {
    usage: { rate: { requests: 4, windowSeconds: 2 }, plantsMax: undefined },
  });

  test("lets a request pass that comes back when it was told to", async () => {
    const token = await short.makeToken({ user: "ann" });
    const headers = { authorization: `Bearer ${token}` };
    await send(short, token, 4);
    for (let turn = 0; turn < 2; turn++) {
      let response = await short.fetch("GET /plants", { headers });
      while (response.status === 200) response = await short.fetch("GET /plants", { headers });
      await Bun.sleep(Number(response.headers.get("retry-after")) * 1_000);
      expect((await short.fetch("GET /plants", { headers })).status).toBe(200);
    }
  });

  const issuer = startIssuer();
  const trusting = openWorld("SQLite", {
    jwt: issuer.trust,
    usage: { rate, plantsMax: undefined },
  });

  test("is of a subject, whose JWTs are renewed", async () => {
    const key = await issuer.makeKey();
    const renew = (sub: string, jti: number) => sign(key, issuer.claims(Date.now(), { sub, jti }));
    const statuses: Record<number, number>[] = [];
    for (let jti = 0; jti < 6; jti++)
      statuses.push(await send(trusting, await renew("ann", jti), 1));
    expect(statuses.map((each) => Object.keys(each)[0])).toEqual([
      ...["200", "200", "200", "200", "200", "429"],
    ]);
    expect(await send(trusting, await renew("bob", 1), 1)).toEqual({ 200: 1 });
    // Who cannot sign takes nothing from anybody.
    const forged = await sign(await makeSigningKey(), issuer.claims(Date.now(), { sub: "bob" }));
    expect(await send(trusting, forged, 9)).toEqual({ 401: 9 });
    expect(await send(trusting, await renew("bob", 2), 9)).toEqual({ 200: 4, 429: 5 });
    issuer.stop();
  });
});

describe.each(engines)("a quota on %s", (engine) => {
  let logged = "";
  const log = createLog("json", (lines) => {
    logged += lines;
  });
  const world = openWorld(engine, { usage: { rate: undefined, plantsMax: 3 } }, log);
  const quota = '"plants";q=3;qu="plants"';

  test("lets a garden hold so many plants, and refuses the next, until one is deleted", async () => {
    const token = await world.makeToken({ user: "ann" });
    for (const id of [1, 2, 3]) {
      const response = await create(world, token, { name: "Fern", id });
      expect(response.status).toBe(201);
      checkHeaders(response.headers, { "RateLimit-Policy": quota, RateLimit: null });
    }
    const refused = await create(world, token, { name: "Fern" });
    expect(refused.status).toBe(507);
    checkHeaders(refused.headers, {
      "RateLimit-Policy": quota,
      RateLimit: '"plants";r=0',
      "Retry-After": null,
    });
    expect(await refused.json()).toMatchObject({
      type: "urn:plantstore:problem:storage-full",
      detail: "The garden may hold 3 plants, and is full. Delete some to make room.",
    });
    expect(await send(world, token, 1, "DELETE /plants/2")).toEqual({ 204: 1 });
    expect((await create(world, token, { name: "Fern" })).status).toBe(201);
  });

  test("leaves answers under a known key and taken ids what they were", async () => {
    const token = await world.makeToken({ user: "bob" });
    const first = await create(world, token, { name: "Fern", id: 7 }, "k");
    await create(world, token, { name: "Fern" });
    await create(world, token, { name: "Fern" });
    const again = await create(world, token, { name: "Fern", id: 7 }, "k");
    expect([first.status, again.status]).toEqual([201, 201]);
    expect((await create(world, token, { name: "Other" }, "k")).status).toBe(422);
    expect((await create(world, token, { name: "Fern", id: 7 })).status).toBe(409);
    expect((await create(world, token, { name: "Fern", id: 99 })).status).toBe(507);
  });

  test("is exact for creates that come at once, by several tokens to one garden", async () => {
    const tokens = await Promise.all(
      ["carol", "dora"].map((user) => world.makeToken({ user, garden: "team" })),
    );
    const responses = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        create(world, tokens[index % 2] ?? "", { name: "Fern" }),
      ),
    );
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(3);
    expect(responses.filter(({ status }) => status === 507)).toHaveLength(57);
    expect(await world.storage.list("team", undefined, 10)).toHaveLength(3);
  });

  test("is counted in the metrics, and is no failure of the service in the log", async () => {
    const metrics = await (await world.fetch("GET /metrics")).text();
    expect(metrics).toMatch(/\nplantstore_refusals_total\{limit="plants"\} \d+\n/);
    log.flush();
    expect(logged).toContain('"status":507');
    expect(logged).not.toContain("request failed");
  });
});

describe("both limits", () => {
  const usage = { rate, plantsMax: 1 };
  const world = openWorld("SQLite", { usage });

  test("are told together", async () => {
    const token = await world.makeToken({ user: "ann" });
    await create(world, token, { name: "Fern" });
    const refused = await create(world, token, { name: "Fern" });
    checkHeaders(refused.headers, {
      "RateLimit-Policy": `${policy}, "plants";q=1;qu="plants"`,
      RateLimit: /^"plants";r=0, "requests";r=3;t=\d+$/,
    });
  });

  const free = openWorld("SQLite");

  test("are off unless they are set, and nothing is told of them", async () => {
    const token = await free.makeToken({ user: "ann" });
    for (const method of ["GET", "POST"]) {
      const headers = { authorization: `Bearer ${token}` };
      const response = await free.fetch(`${method} /plants`, { headers });
      checkHeaders(response.headers, { "RateLimit-Policy": null, RateLimit: null });
    }
    expect(await send(free, token, 300)).toEqual({ 200: 300 });
  });
});
