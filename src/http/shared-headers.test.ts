/** The headers that all responses share, for all origins and for a list of them. */
import { describe, expect, test } from "bun:test";
import { createSharedHeaders, preflightHeaders } from "./shared-headers.ts";

const exposed =
  "Location, Link, X-Request-Id, Idempotency-Replayed, Retry-After, RateLimit, RateLimit-Policy";
const ours = "https://plants.example";

describe("with all origins allowed", () => {
  const headersFor = createSharedHeaders("*");

  test.each([null, "https://any.example", "null"])(
    "lets the origin %p read an answer",
    (origin) => {
      const headers = headersFor("private", origin);
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-expose-headers")).toBe(exposed);
      expect(headers.has("vary")).toBe(false);
    },
  );

  test("never permits credentials, since there are no cookies", () => {
    expect(headersFor("public", ours).has("access-control-allow-credentials")).toBe(false);
  });
});

describe("with a list of origins", () => {
  const headersFor = createSharedHeaders([ours, "http://localhost:3000"]);

  test.each([ours, "http://localhost:3000"])("lets %s read an answer", (origin) => {
    const headers = headersFor("private", origin);
    expect(headers.get("access-control-allow-origin")).toBe(origin);
    expect(headers.get("access-control-expose-headers")).toBe(exposed);
    expect(headers.get("vary")).toBe("Origin");
  });

  test.each([null, "null", "*", "", `${ours}.evil.example`, "http://plants.example", `${ours}/`])(
    "does not let %p read it, and still says that it depends on the origin",
    (origin) => {
      const headers = headersFor("private", origin);
      expect(headers.has("access-control-allow-origin")).toBe(false);
      expect(headers.has("access-control-expose-headers")).toBe(false);
      expect(headers.get("vary")).toBe("Origin");
    },
  );
});

test.each([["*" as const], [[ours]]])("are safe to keep only where public, for %p", (allowed) => {
  const headersFor = createSharedHeaders(allowed);
  expect(headersFor("private", null).get("cache-control")).toBe("no-store");
  expect(headersFor("public", null).has("cache-control")).toBe(false);
  for (const sharing of ["public", "private"] as const) {
    expect(headersFor(sharing, null).get("x-content-type-options")).toBe("nosniff");
  }
});

test("what one response adds does not reach the next", () => {
  const headersFor = createSharedHeaders("*");
  const response = new Response(null, { headers: headersFor("private", null) });
  response.headers.set("Location", "/plants/7");
  expect(headersFor("private", null).has("location")).toBe(false);
});

test("a preflight is told the methods and the headers that a request may have", () => {
  expect(preflightHeaders("DELETE, OPTIONS")).toEqual({
    Allow: "DELETE, OPTIONS",
    "Access-Control-Allow-Methods": "DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, X-Request-Id",
    "Access-Control-Max-Age": "86400",
  });
});
