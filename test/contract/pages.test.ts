/** The pages for people: their addresses, policies, caches and compression. */
import { describe, expect, test } from "bun:test";
import { openGarden } from "./garden.ts";

const { anonymous, service } = openGarden("SQLite");
const below = openGarden("SQLite", { basePath: "/garden/v1" });

/** The addresses of all that a page loads, as the page has them. */
async function findAssets(path: string, at = service): Promise<string[]> {
  const page = await (await at.fetch(`GET ${path}`)).text();
  return [...page.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, address = ""]) => address);
}

test("a base path without its slash leads to the console", async () => {
  for (const method of ["GET", "HEAD"]) {
    const { headers } = await below.anonymous(`${method} `, 308);
    expect(headers.get("Location")).toBe("/garden/v1/");
  }
  await below.anonymous("POST ", 405);
});

test("the icon is at the root, whatever the base path, and needs no token", async () => {
  const { headers, text } = await anonymous("GET /favicon.ico", 200);
  expect(text).toStartWith("<svg ");
  expect(headers.toJSON()).toMatchObject({
    "content-type": "image/svg+xml",
    "cache-control": "public, max-age=604800",
  });
  await anonymous("HEAD /favicon.ico", 200);
  await anonymous("POST /favicon.ico", 405);
  await below.anonymous("GET /favicon.ico", 404);
  const atRoot = new Request("http://plants.test/favicon.ico", { headers: { host: "a" } });
  expect((await below.service.assembly.app.fetch(atRoot)).status).toBe(200);
});

describe.each(["/", "/docs"])("the page %s", (path) => {
  test("is HTML that is revalidated each time, under a strict policy", async () => {
    const { headers, text } = await anonymous(`GET ${path}`, 200);
    expect(headers.toJSON()).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "content-security-policy": expect.stringMatching(
        /^default-src 'none'; script-src 'self'; (?!.*unsafe-eval)/,
      ),
    });
    expect(text).not.toMatch(/<script>|<style|style="|https?:\/\/(?!www\.w3\.org)/);
  });

  test("is not sent again to a browser that has it", async () => {
    const { header } = await anonymous(`GET ${path}`, 200).then((reply) => ({
      header: reply.header("ETag") ?? "",
    }));
    for (const known of [`"x", ${header}`, header.slice(2), "*"]) {
      const held = await anonymous(`GET ${path}`, 304, undefined, { "If-None-Match": known });
      expect([held.text, held.header("ETag"), held.header("Cache-Control")]).toEqual([
        ...["", header, "no-cache"],
      ]);
    }
    await anonymous(`GET ${path}`, 200, undefined, { "If-None-Match": '"x"' });
  });

  test("loads files with a hash in their names, to be cached for a year", async () => {
    const assets = await findAssets(path);
    expect(assets.length).toBeGreaterThanOrEqual(2);
    for (const address of assets) {
      expect(address).toMatch(/-[0-9a-f]{16}\.(?:js|css)$/);
      const { headers } = await anonymous(`GET /${address}`, 200);
      const type = address.endsWith("js") ? "text/javascript" : "text/css";
      expect(headers.toJSON()).toMatchObject({
        "cache-control": "public, max-age=31536000, immutable",
        "content-type": `${type}; charset=utf-8`,
      });
      expect(headers.get("Content-Encoding")).toBeNull();
    }
  });

  test("has relative addresses only, so that it works below a base path", async () => {
    for (const address of await findAssets(path, below.service)) {
      await below.anonymous(`GET /${address}`, 200);
    }
    const outside = new Request(`http://plants.test${path}`, { headers: { host: "plants.test" } });
    expect((await below.service.assembly.app.fetch(outside)).status).toBe(404);
  });
});

test("the console permits neither inline code and style nor HTML from text", async () => {
  const policy = (await anonymous("GET /", 200)).header("Content-Security-Policy");
  expect(policy).toContain("style-src 'self';");
  expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'");
  expect(policy).not.toContain("unsafe");
});

test.each([
  ["br, GZIP;q=0.5", "gzip"],
  ["gzip; q=0.0, br", null],
  ["br", null],
])(
  "with Accept-Encoding: %s, the files of the pages are sent as %s",
  async (accepted, encoding) => {
    const [address] = await findAssets("/");
    const plain = await service.fetch(`GET /${address}`);
    const headers = { "Accept-Encoding": accepted };
    const response = await service.fetch(`GET /${address}`, { headers });
    expect(response.headers.get("Content-Encoding")).toBe(encoding);
    expect(response.headers.get("Vary")).toContain("Accept-Encoding");
    const bytes = new Uint8Array(await response.arrayBuffer());
    const text = encoding ? Bun.gunzipSync(bytes) : bytes;
    expect(new TextDecoder().decode(text)).toBe(await plain.text());
  },
);

test.each(["console.js", "..%2Fconsole.ts", "console-0000000000000000.js"])(
  "/assets/%s is 404",
  async (name) => {
    await anonymous(`GET /assets/${name}`, 404);
  },
);
