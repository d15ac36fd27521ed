/** What needs no token: pages, their policies and caches, and what they load; and origins. */
import { describe, expect, test } from "bun:test";
import { openGarden } from "./garden.ts";

const { anonymous, service } = openGarden("SQLite");
const below = openGarden("SQLite", { basePath: "/garden/v1" });

/** Beside the base path. */
const fetchAtRoot = (path: string) =>
  below.service.parts.pipeline.fetch(
    new Request(`http://plants.test${path}`, { headers: { host: "plants.test" } }),
  );

/** The addresses of all that a page loads, as the page has them. */
async function findAssets(path: string, at = anonymous): Promise<string[]> {
  const page = (await at(`GET ${path}`, 200)).text;
  return [...page.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, address = ""]) => address);
}

test("a base path without its slash leads to the console", async () => {
  const { headers } = await below.anonymous("GET ", 308);
  expect(headers.get("Location")).toBe("/garden/v1/");
});

test("the icon is at the root, whatever the base path, and needs no token", async () => {
  const { headers, text } = await anonymous("GET /favicon.ico", 200);
  expect(text).toStartWith("<svg ");
  expect(headers.toJSON()).toMatchObject({
    "content-type": "image/svg+xml",
    "cache-control": "public, max-age=604800",
  });
  expect((await fetchAtRoot("/favicon.ico")).status).toBe(200);
});

const policyOfBoth =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

describe.each([
  ["/", `${policyOfBoth}; require-trusted-types-for 'script'; trusted-types 'none'`],
  ["/docs", policyOfBoth],
])("the page %s", (path, policy) => {
  test("is HTML that is revalidated each time, under a strict policy", async () => {
    const { headers, text } = await anonymous(`GET ${path}`, 200);
    expect(headers.toJSON()).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "content-security-policy": policy,
    });
    expect(text).toMatch(/<meta name="description" content="[^"]{50,160}" \/>/);
    expect(text).not.toMatch(/<script>|<style|style="|https?:\/\/(?!www\.w3\.org)/);
    const etag = headers.get("ETag") ?? "";
    for (const known of [`"x", ${etag}`, etag.slice(2), "*"]) {
      const kept = await anonymous(`GET ${path}`, 304, undefined, { "If-None-Match": known });
      const shown = ["ETag", "Cache-Control"].map((name) => kept.headers.get(name));
      expect([kept.text, ...shown]).toEqual(["", etag, "no-cache"]);
    }
    await anonymous(`GET ${path}`, 200, undefined, { "If-None-Match": '"x"' });
  });

  test("loads files with a hash in their names, to be cached for a year, plain or as gzip, in chunks", async () => {
    const assets = await findAssets(path);
    expect(assets.length).toBeGreaterThanOrEqual(2);
    for (const address of assets) {
      expect(address).toMatch(/-[0-9a-f]{16}\.(?:js|css)$/);
      const plain = (await anonymous(`GET /${address}`, 200)).text;
      for (const [accepted, encoding] of [
        ["br, GZIP;q=0.5", "gzip"],
        ["gzip; q=0.0, br", null],
      ]) {
        const accepting = { "Accept-Encoding": accepted ?? "" };
        const { headers, body } = await service.fetch(`GET /${address}`, { headers: accepting });
        const type = address.endsWith("js") ? "text/javascript" : "text/css";
        expect(headers.toJSON()).toMatchObject({
          "cache-control": "public, max-age=31536000, immutable",
          "content-type": `${type}; charset=utf-8`,
          vary: expect.stringContaining("Accept-Encoding"),
        });
        expect(headers.get("Content-Encoding")).toBe(encoding ?? null);
        const chunks = await Array.fromAsync(body ?? []);
        expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThanOrEqual(65_536);
        const bytes = new Uint8Array(Buffer.concat(chunks));
        const text = new TextDecoder().decode(encoding ? Bun.gunzipSync(bytes) : bytes);
        expect(text === plain).toBe(true);
      }
    }
  });

  test("has relative addresses only, so that it works below a base path", async () => {
    for (const address of await findAssets(path, below.anonymous)) {
      await below.anonymous(`GET /${address}`, 200);
    }
    expect((await fetchAtRoot(path)).status).toBe(404);
  });
});

describe("the OpenAPI document", () => {
  test("has an ETag, so that it's sent once, and is compressed for a client that accepts gzip", async () => {
    const { headers, text } = await anonymous("GET /openapi.json", 200);
    expect(headers.toJSON()).toMatchObject({
      "content-type": "application/json",
      "cache-control": "no-cache",
      vary: expect.stringContaining("Accept-Encoding"),
    });
    const etag = headers.get("ETag") ?? "";
    for (const known of [etag, etag.slice(2), `"x", ${etag}`, "*"]) {
      const sent = { "If-None-Match": known };
      const kept = await anonymous("GET /openapi.json", 304, undefined, sent);
      expect([kept.text, kept.headers.get("ETag")]).toEqual(["", etag]);
    }
    await anonymous("GET /openapi.json", 200, undefined, { "If-None-Match": '"x"' });
    const gzipped = await service.fetch("GET /openapi.json", {
      headers: { "Accept-Encoding": "gzip" },
    });
    expect(gzipped.headers.get("Content-Encoding")).toBe("gzip");
    expect(new TextDecoder().decode(Bun.gunzipSync(await gzipped.bytes()))).toBe(text);
  });

  test("can be read by a page of another origin that sends its token", async () => {
    const { headers } = await anonymous("OPTIONS /openapi.json", 204);
    expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
    expect(headers.get("Access-Control-Allow-Methods")).toBe("GET, HEAD, OPTIONS");
    expect(headers.get("Access-Control-Allow-Headers")).toContain("Authorization");
  });
});

describe("where only some origins are let in", () => {
  const origins = ["https://a.example", "https://b.example"];
  const { call } = openGarden("SQLite", { corsOrigins: origins });

  test("each of them may read a response, cached or not, and no other", async () => {
    const others = ["https://c.example", "https://a.example.evil.example", "null"];
    for (const Origin of [...origins, ...origins, ...others, ...origins]) {
      const { headers } = await call("GET /plants", 200, undefined, { Origin });
      const allowed = others.includes(Origin) ? null : Origin;
      expect(headers.get("Access-Control-Allow-Origin")).toBe(allowed);
      expect(headers.get("Vary")).toContain("Origin");
    }
    const events = await call("GET /events", 200, undefined, { Origin: "https://a.example" });
    expect(events.headers.get("Vary")?.split(", ").toSorted()).toEqual(["Accept", "Origin"]);
  });
});
