/** The pages for people, through the app: their addresses, policies, caches and compression. */
import { describe, expect, test } from "bun:test";
import { checkHeaders, openWorld } from "./scenario.ts";

const world = openWorld("SQLite");
const below = openWorld("SQLite", { basePath: "/garden/v1" });

/** The addresses of all that a page loads, as the page has them. */
async function findAssets(path: string, at = world): Promise<string[]> {
  const page = await (await at.fetch(`GET ${path}`)).text();
  return [...page.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, address = ""]) => address);
}

test("a base path without its slash leads to the console", async () => {
  for (const method of ["GET", "HEAD"]) {
    const response = await below.fetch(`${method} /garden/v1`);
    expect([response.status, response.headers.get("location")]).toEqual([308, "/garden/v1/"]);
  }
  expect((await below.fetch("POST /garden/v1")).status).toBe(405);
  expect((await below.fetch("GET /garden")).status).toBe(404);
});

test("the icon is at the root, whatever the base path, and needs no token", async () => {
  for (const at of [world, below]) {
    const response = await at.fetch("GET /favicon.ico");
    expect([response.status, await response.text()]).toEqual([
      200,
      expect.stringMatching(/^<svg /),
    ]);
    checkHeaders(response.headers, {
      "content-type": "image/svg+xml",
      "cache-control": "public, max-age=604800",
    });
    expect((await at.fetch("HEAD /favicon.ico")).status).toBe(200);
    expect((await at.fetch("POST /favicon.ico")).status).toBe(405);
  }
  expect((await below.fetch("GET /garden/v1/favicon.ico")).status).toBe(404);
  expect(await (await world.fetch("GET /openapi.json")).text()).not.toContain("favicon");
});

describe.each(["/", "/docs"])("the page %s", (path) => {
  test("is HTML that is revalidated each time, under a strict policy", async () => {
    const response = await world.fetch(`GET ${path}`);
    expect(response.status).toBe(200);
    checkHeaders(response.headers, {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "cross-origin-opener-policy": "same-origin",
      "content-security-policy": /^default-src 'none'; script-src 'self'; /,
    });
    expect(response.headers.get("content-security-policy")).not.toContain("unsafe-eval");
    expect(await response.text()).not.toMatch(
      /<script>|<style|style="|https?:\/\/(?!www\.w3\.org)/,
    );
  });

  test("is not sent again to a browser that has it", async () => {
    const etag = (await world.fetch(`GET ${path}`)).headers.get("etag") ?? "";
    for (const known of [`"x", ${etag}`, etag.slice(2), "*"]) {
      const held = await world.fetch(`GET ${path}`, { headers: { "if-none-match": known } });
      expect([held.status, await held.text()]).toEqual([304, ""]);
      checkHeaders(held.headers, { etag, "cache-control": "no-cache" });
    }
    const old = await world.fetch(`GET ${path}`, { headers: { "if-none-match": '"x"' } });
    expect(old.status).toBe(200);
  });

  test("loads files with a hash in their names, to be cached for a year", async () => {
    const assets = await findAssets(path);
    expect(assets.length).toBeGreaterThanOrEqual(2);
    for (const address of assets) {
      expect(address).toMatch(/-[0-9a-f]{16}\.(?:js|css)$/);
      const response = await world.fetch(`GET /${address}`);
      checkHeaders(response.headers, {
        "cache-control": "public, max-age=31536000, immutable",
        "content-type": address.endsWith("js")
          ? "text/javascript; charset=utf-8"
          : "text/css; charset=utf-8",
        "content-encoding": null,
      });
      expect(response.status).toBe(200);
    }
  });

  test("has relative addresses only, so that it works below a base path", async () => {
    expect((await below.fetch(`GET ${path}`)).status).toBe(404);
    for (const address of await findAssets(`/garden/v1${path}`, below)) {
      expect((await below.fetch(`GET /garden/v1/${address}`)).status).toBe(200);
    }
  });
});

test("the console permits neither inline code and style nor HTML from text", async () => {
  const policy = (await world.fetch("GET /")).headers.get("content-security-policy");
  expect(policy).toContain("style-src 'self';");
  expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'");
  expect(policy).not.toContain("unsafe");
});

describe("the files of the pages", () => {
  test.each([
    ["br, GZIP;q=0.5", true],
    ["gzip; q=0.0, br", false],
    ["br", false],
  ])("are compressed where %p is accepted: %p", async (accepted, isCompressed) => {
    const [address] = await findAssets("/");
    const plain = await world.fetch(`GET /${address}`);
    const response = await world.fetch(`GET /${address}`, {
      headers: { "accept-encoding": accepted },
    });
    checkHeaders(response.headers, {
      "content-encoding": isCompressed ? "gzip" : null,
      vary: /Accept-Encoding/,
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const text = isCompressed ? Bun.gunzipSync(bytes) : bytes;
    expect(new TextDecoder().decode(text)).toBe(await plain.text());
  });

  test("are not found under another name", async () => {
    for (const name of ["console.js", "..%2Fconsole.ts", "console-0000000000000000.js"]) {
      expect((await world.fetch(`GET /assets/${name}`)).status).toBe(404);
    }
  });
});
