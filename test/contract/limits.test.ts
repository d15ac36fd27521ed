/** Rate limits and quotas: what counts, what is refused, and what callers learn. */
import { afterAll, describe, expect, test } from "bun:test";
import { makeSigningKey, sign, startIssuer } from "../../testing/openid-issuer.ts";
import { bearer, onEachEngine, openGarden } from "./garden.ts";

const issuer = startIssuer();
const key = await issuer.makeKey();
afterAll(() => issuer.stop());

describe("a rate limit of a hundred requests a day", () => {
  const { call, fetch } = openGarden("SQLite", {
    usage: { rate: { requests: 100, windowSeconds: 86_400 }, plantsMax: undefined },
  });

  test("has no part in the Retry-After of a token with too many streams", async () => {
    const asStream = { Accept: "text/event-stream" };
    const open = () => fetch("GET /events", undefined, asStream);
    const streams = await Promise.all(Array.from({ length: 64 }, open));

    const { headers } = await call("GET /events", 429, undefined, asStream);
    expect(headers.get("Retry-After")).toBe("1");
    await Promise.all(streams.map(({ body }) => body?.cancel()));
  });
});

describe("a rate limit of five requests a day", () => {
  const garden = openGarden("SQLite", {
    jwt: issuer.trust,
    usage: { rate: { requests: 5, windowSeconds: 86_400 }, plantsMax: undefined },
  });
  const { call, reader, anonymous, atOnce } = garden;
  /** Sends a request this often with a token, and returns the statuses, the lowest first. */
  const send = (token: string, count: number, request = "GET /plants?limit=1") =>
    atOnce(count, request, undefined, bearer(token));

  test("is of each token, even of the same user and garden", async () => {
    const statuses = await send(await garden.token("write"), 6);
    const statusesOfAnother = await send(await garden.token("read"), 6);

    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    expect(statusesOfAnother).toEqual([200, 200, 200, 200, 200, 429]);
  });

  test("is shared by all JWTs of a subject", async () => {
    for (let tokenId = 1; tokenId <= 5; tokenId++) {
      const claims = issuer.claims(Date.now(), { sub: "ann", jti: tokenId });
      expect(await send(await sign(key, claims), 1)).toEqual([200]);
    }

    const claims = issuer.claims(Date.now(), { sub: "ann", jti: 6 });
    expect(await send(await sign(key, claims), 1)).toEqual([429]);
  });

  test("isn't used up by forged JWTs", async () => {
    const forgedKey = { ...(await makeSigningKey()), kid: key.kid };
    const claims = issuer.claims(Date.now(), { sub: "bea" });

    const forged = await send(await sign(forgedKey, claims), 9);
    const good = await send(await sign(key, claims), 6);

    expect(forged).toEqual([401, 401, 401, 401, 401, 401, 401, 401, 401]);
    expect(good).toEqual([200, 200, 200, 200, 200, 429]);
  });

  test("doesn't apply to unknown tokens", async () => {
    const statuses = await send("plant_unknown", 9);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 401, 401, 401, 401]);
  });

  test("isn't used up by preflights and unknown paths", async () => {
    const token = await garden.token();

    const preflights = await send(token, 9, "OPTIONS /plants");
    const wrongPaths = await send(token, 9, "GET /nothing");
    const reads = await send(token, 6);

    expect(preflights).toEqual([204, 204, 204, 204, 204, 204, 204, 204, 204]);
    expect(wrongPaths).toEqual([404, 404, 404, 404, 404, 404, 404, 404, 404]);
    expect(reads).toEqual([200, 200, 200, 200, 200, 429]);
  });

  test("counts every request with a valid token, even if it's refused later", async () => {
    const token = await garden.token("read");

    expect(await send(token, 1, "GET /plants?limit=x")).toEqual([400]);
    expect(await send(token, 1, "DELETE /plants/1")).toEqual([403]);
    expect(await send(token, 1, "HEAD /plants")).toEqual([200]);
    expect(await send(token, 3)).toEqual([200, 200, 429]);
  });

  test("is checked before the scope", async () => {
    const token = await garden.token("read");
    await send(token, 5);
    expect(await send(token, 1, "DELETE /plants/1")).toEqual([429]);
  });

  test("counts a bulk once", async () => {
    const body = [{ name: "Fern" }, { name: "Ivy" }];
    const { headers } = await call("POST /plants/bulk", 200, body);
    expect(headers.get("RateLimit")).toContain('"requests";r=4;');
  });

  test("is shown in every response, even in cached ones", async () => {
    for (const remaining of [4, 3, 2]) {
      const { headers } = await call("GET /plants?limit=1", 200);
      expect(headers.get("RateLimit-Policy")).toBe('"requests";q=5;w=86400');
      expect(headers.get("RateLimit")).toBe(`"requests";r=${remaining};t=17280`);
    }

    const invalid = await call("GET /plants?limit=x", 400);
    expect(invalid.headers.get("RateLimit")).toContain('"requests";r=1;');
    expect(invalid.headers.get("Retry-After")).toBeNull();

    const last = await call("POST /plants/bulk", 200, [{ name: "Fern" }, { name: "Ivy" }]);
    expect(last.headers.get("RateLimit")).toContain('"requests";r=0;');
  });

  test("is hidden from requests without a token", async () => {
    const { headers } = await anonymous("GET /plants", 401);
    expect(headers.get("RateLimit-Policy")).toBeNull();
  });

  test("refuses a create with the time to wait, and stores nothing", async () => {
    await send(await garden.token(), 5);

    const { headers } = await call("POST /plants", 429, { name: "Moss" });

    expect(headers.get("Retry-After")).toBe("17280");
    expect(headers.get("RateLimit")).toBe('"requests";r=0;t=17280');
    expect((await reader("GET /plants", 200)).json).toEqual([]);
  });
});

onEachEngine(
  ({ call, anonymous, list, service }) => {
    describe("a quota of three plants", () => {
      const fern = { name: "Fern" };

      test("is shown beside the rate limit", async () => {
        const { headers } = await call("POST /plants", 201, fern);
        const policy = '"requests";q=9;w=60, "plants";q=3;qu="plants"';
        expect(headers.get("RateLimit-Policy")).toBe(policy);
      });

      test("counts each plant of a bulk, and refuses the plants that are too many", async () => {
        const { json } = await call("POST /plants/bulk", 200, [fern, fern, fern, fern, fern]);

        const refused = { status: 507, code: "storage-full", detail: expect.any(String) };
        expect(json).toEqual([
          { status: 201, id: 1 },
          { status: 201, id: 2 },
          { status: 201, id: 3 },
          refused,
          refused,
        ]);
      });

      test("lets a put replace a plant, and not create one", async () => {
        await call("POST /plants/bulk", 200, [fern, fern, fern]);
        await call("PUT /plants/3", 200, { name: "Ivy" });
        await call("PUT /plants/4", 507, fern);
        expect(await list()).toEqual(["Fern", "Fern", "Ivy"]);
      });

      test("refuses a create with no plants left, and names no time to retry", async () => {
        await call("POST /plants/bulk", 200, [fern, fern, fern]);

        const { headers } = await call("POST /plants", 507, fern);

        expect(headers.get("RateLimit")).toMatch(/^"plants";r=0, "requests";r=7;t=\d+$/);
        expect(headers.get("Retry-After")).toBeNull();
      });

      test("lets a refused create be sent again with its key once a plant is deleted", async () => {
        const key = { "Idempotency-Key": "k" };
        await call("POST /plants/bulk", 200, [fern, fern, fern]);
        await call("POST /plants", 507, fern, key);

        await call("DELETE /plants/2", 204);

        await call("POST /plants", 201, fern, key);
      });

      test("counts each refused plant in the metrics", async () => {
        const readRefusals = async () => {
          const { text } = await anonymous("GET /metrics", 200);
          const sample = /^plantstore_refusals_total\{limit="plants"\} (\d+)$/m.exec(text);
          return Number(sample?.[1] ?? 0);
        };
        const before = await readRefusals();

        await call("POST /plants/bulk", 200, [fern, fern, fern, fern, fern]);
        await call("PUT /plants/4", 507, fern);
        await call("POST /plants", 507, fern);

        expect(await readRefusals()).toBe(before + 4);
      });

      test("is logged as a refusal, and not as a failure of the service", async () => {
        await call("POST /plants/bulk", 200, [fern, fern, fern]);
        await call("POST /plants", 507, fern);

        const log = service.readLog();
        expect(log).toContain('"status":507');
        expect(log).not.toContain("request failed");
      });
    });

    test("the metrics are plain text", async () => {
      const { headers } = await anonymous("GET /metrics", 200);
      expect(headers.get("Content-Type")).toMatch(/^text\/plain\b/);
    });
  },
  { usage: { rate: { requests: 9, windowSeconds: 60 }, plantsMax: 3 } },
);
