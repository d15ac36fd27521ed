/** What browsers and caches see of responses, the probes, and the OpenAPI document. */
import { describe, expect, test } from "bun:test";
import { onEachEngine, openGarden } from "./garden.ts";

type Sample = readonly [request: string, status: number, body?: object];

const fern = { name: "Fern", id: 1 };
/** One for every kind of response that depends on a token, in this order. */
const privateSamples: readonly Sample[] = [
  ["POST /plants", 201, fern],
  ["GET /plants", 200],
  ["HEAD /plants?limit=1", 200],
  ["GET /plants/1", 200],
  ["PUT /plants/1", 200, fern],
  ["GET /tags", 200],
  ["GET /events", 200],
  ["GET /me", 200],
  ["POST /plants/bulk", 200, [{ name: "Ivy" }]],
  ["GET /plants?limit=x", 400],
  ["POST /plants", 409, fern],
  ["DELETE /plants/1", 204],
  ["DELETE /plants/1", 404],
  ["POST /plants/bulk-delete", 200, { ids: [7] }],
];
const publicSamples: readonly Sample[] = [
  ["GET /plants", 401],
  ["GET /nothing-here", 404],
  ["PUT /plants", 405],
  ["OPTIONS /plants", 204],
  ["GET /openapi.json", 200],
  ["GET /", 200],
];
const probes: readonly Sample[] = [
  ["GET /healthz", 200],
  ["HEAD /readyz", 200],
  ["GET /metrics", 200],
  ["POST /readyz", 405],
  ["GET /healthz?color=green", 400],
];
const exposed =
  "Location, Link, X-Request-Id, ETag, Idempotency-Replayed, Retry-After, RateLimit, RateLimit-Policy";
const Origin = "https://page.example";

onEachEngine(({ call, anonymous, service }) => {
  test("a page of any origin can read responses and their headers, and none is cached that depends on a token", async () => {
    for (const [request, status, body] of privateSamples) {
      const reply = await call(request, status, body, { Origin });
      expect([request, reply.header("Cache-Control")]).toEqual([request, "no-store"]);
      expect(reply.header("Access-Control-Allow-Origin")).toBe("*");
      expect(reply.header("Access-Control-Expose-Headers")).toBe(exposed);
    }
    for (const [request, status] of publicSamples) {
      const reply = await anonymous(request, status, undefined, { Origin });
      expect(reply.header("Access-Control-Allow-Origin")).toBe("*");
      expect(reply.header("Access-Control-Expose-Headers")).toBe(exposed);
    }
  });

  test("no page of another origin can read the probes", async () => {
    for (const [request, status] of probes) {
      const reply = await anonymous(request, status, undefined, { Origin });
      expect(reply.header("Access-Control-Allow-Origin")).toBeUndefined();
      expect(reply.header("Access-Control-Expose-Headers")).toBeUndefined();
    }
  });

  test.each([
    ["/plants", "GET, HEAD, POST, OPTIONS"],
    ["/plants/1", "GET, HEAD, PUT, DELETE, OPTIONS"],
    ["/me", "GET, HEAD, OPTIONS"],
  ])(
    "a preflight of %s allows its methods, and the headers of the interface",
    async (path, allow) => {
      const { headers } = await anonymous(`OPTIONS ${path}`, 204, undefined, {
        Origin,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization,content-type,idempotency-key,traceparent",
      });
      const sorted = (text = "") => text.split(", ").toSorted();
      expect(sorted(headers.get("Access-Control-Allow-Methods") ?? "")).toEqual(sorted(allow));
      expect(sorted(headers.get("Access-Control-Allow-Headers") ?? "")).toEqual(
        sorted(
          "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, " +
            "X-Request-Id, traceparent, tracestate",
        ),
      );
      expect(headers.get("Access-Control-Max-Age")).toBe("86400");
    },
  );

  test("/metrics is Prometheus text, without a token", async () => {
    const { text, headers } = await anonymous("GET /metrics", 200);
    expect(headers.get("Content-Type")).toMatch(/^text\/plain\b/);
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(lines.length).toBeGreaterThan(10);
    const isSample = (line: string) => /^[a-zA-Z_:][\w:]*(?:\{.*\})? \S+$/.test(line);
    expect(lines.filter((line) => !isSample(line))).toEqual([]);
  });

  test("/openapi.json has the base path as its server, and is 304 for a client that has it", async () => {
    const { json, headers } = await anonymous("GET /openapi.json", 200);
    expect(headers.get("Content-Type")).toBe("application/json");
    expect(json.servers[0].url).toBe(service.base || "/");
    expect(JSON.stringify(json.components.securitySchemes)).toContain('"scheme":"bearer"');
    const etag = headers.get("ETag") ?? "";
    const known = { "If-None-Match": etag };
    const same = await anonymous("GET /openapi.json", 304, undefined, known);
    expect([same.text, same.header("ETag")]).toEqual(["", etag]);
    await anonymous("GET /openapi.json", 200, undefined, { "If-None-Match": '"x"' });
  });
});

describe("where only some origins are let in", () => {
  const origins = ["https://a.example", "https://b.example"];
  const { call } = openGarden("SQLite", { corsOrigins: origins });

  test("each of them may read a response, cached or not, and no other", async () => {
    const others = ["https://c.example", "https://a.example.evil.example", "null"];
    const allowed: (string | undefined)[] = [];
    for (const Origin of [...origins, ...origins, ...others, ...origins]) {
      const reply = await call("GET /plants", 200, undefined, { Origin });
      allowed.push(reply.header("Access-Control-Allow-Origin"));
      expect(reply.header("Vary")).toContain("Origin");
    }
    const none = others.map(() => undefined);
    expect(allowed).toEqual([...origins, ...origins, ...none, ...origins]);
  });
});
