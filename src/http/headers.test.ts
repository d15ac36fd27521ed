/** The headers that all responses share, for a list of origins. */
import { describe, expect, test } from "bun:test";
import { createSharedHeaders } from "./headers.ts";

const ours = "https://plants.example";

function from(origin: string | null): Headers {
  return new Headers(origin === null ? {} : { origin });
}

describe("with a list of origins", () => {
  const headersFor = createSharedHeaders([ours, "http://localhost:3000"]);

  test.each([ours, "http://localhost:3000"])("lets %s read a response", (origin) => {
    const headers = headersFor("private", "text/plain", from(origin));
    expect(headers.get("access-control-allow-origin")).toBe(origin);
    expect(headers.has("access-control-expose-headers")).toBe(true);
    expect(headers.get("vary")).toBe("Origin");
  });

  test.each([null, "null", "*", "", `${ours}.evil.example`, "http://plants.example", `${ours}/`])(
    "does not let %p read it, and still says that it depends on the origin",
    (origin) => {
      const headers = headersFor("private", "text/plain", from(origin));
      expect(headers.has("access-control-allow-origin")).toBe(false);
      expect(headers.has("access-control-expose-headers")).toBe(false);
      expect(headers.get("vary")).toBe("Origin");
    },
  );
});

test("what one response adds does not reach the next", () => {
  const headersFor = createSharedHeaders("*");
  const response = new Response(null, {
    headers: headersFor("private", "text/plain", from(null)),
  });
  response.headers.set("Location", "/plants/7");
  expect(headersFor("private", "text/plain", from(null)).has("location")).toBe(false);
});
