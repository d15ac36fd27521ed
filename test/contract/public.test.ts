/** What needs no token: pages, their policies and caches, and what they load; and origins. */
import { describe, expect, test } from "bun:test";
import { openGarden } from "./garden.ts";

const { anonymous, service } = openGarden("SQLite");
const withBasePath = openGarden("SQLite", { basePath: "/garden/v1" });

/** Requests a path of the service with a base path, without that base path. */
async function fetchAtRoot(path: string): Promise<Response> {
  const headers = { host: "plants.test" };
  const request = new Request(`http://plants.test${path}`, { headers });
  return withBasePath.service.parts.pipeline.fetch(request);
}

/** The addresses of the scripts and style sheets in a page, which are relative. */
function findAssets(page: string): string[] {
  return [...page.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, address = ""]) => address);
}

describe("a base path", () => {
  test("without its slash redirects to the console", async () => {
    const { headers } = await withBasePath.anonymous("GET ", 308);

    expect(headers.get("Location")).toBe("/garden/v1/");
  });
});

describe("the icon", () => {
  test("is an SVG, cached for a week, and needs no token", async () => {
    const { headers, text } = await anonymous("GET /favicon.ico", 200);

    expect(text).toStartWith("<svg ");
    expect(headers.get("Content-Type")).toBe("image/svg+xml");
    expect(headers.get("Cache-Control")).toBe("public, max-age=604800");
  });

  test("is at the root, whatever the base path", async () => {
    const { status } = await fetchAtRoot("/favicon.ico");

    expect(status).toBe(200);
  });
});

describe("the content security policy", () => {
  test("of the reference lets it load from the service only", async () => {
    const { headers } = await anonymous("GET /docs", 200);

    expect(headers.get("Content-Security-Policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
        "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    );
  });

  test("of the console also forbids it to make HTML from text", async () => {
    const { headers } = await anonymous("GET /", 200);

    expect(headers.get("Content-Security-Policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
        "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; " +
        "require-trusted-types-for 'script'; trusted-types 'none'",
    );
  });
});

describe.each(["/", "/docs"])("the page %s", (path) => {
  test("is HTML", async () => {
    const { headers } = await anonymous(`GET ${path}`, 200);

    expect(headers.get("Content-Type")).toBe("text/html; charset=utf-8");
  });

  test("sends no referrer, and shares no window with pages of other origins", async () => {
    const { headers } = await anonymous(`GET ${path}`, 200);

    expect(headers.get("Referrer-Policy")).toBe("no-referrer");
    expect(headers.get("Cross-Origin-Opener-Policy")).toBe("same-origin");
  });

  test("has a description", async () => {
    const { text } = await anonymous(`GET ${path}`, 200);

    expect(text).toMatch(/<meta name="description" content="[^"]{50,160}" \/>/);
  });

  test("has no inline scripts or styles, and no addresses elsewhere", async () => {
    const { text } = await anonymous(`GET ${path}`, 200);

    expect(text).not.toMatch(/<script>|<style|style="/);
    // The name of a namespace is no address.
    expect(text).not.toMatch(/https?:\/\/(?!www\.w3\.org)/);
  });

  test("is revalidated each time: a 304 as long as it's the same", async () => {
    const { headers } = await anonymous(`GET ${path}`, 200);
    const etag = headers.get("ETag") ?? "";
    expect(etag).toMatch(/^W\/".+"$/);
    expect(headers.get("Cache-Control")).toBe("no-cache");

    const strongEtag = etag.slice("W/".length);
    for (const condition of [`"x", ${etag}`, strongEtag, "*"]) {
      const known = { "If-None-Match": condition };
      const unchanged = await anonymous(`GET ${path}`, 304, undefined, known);
      expect(unchanged.text).toBe("");
      expect(unchanged.headers.get("ETag")).toBe(etag);
      expect(unchanged.headers.get("Cache-Control")).toBe("no-cache");
    }
  });

  test("is sent again to a client that knows another version", async () => {
    await anonymous(`GET ${path}`, 200, undefined, { "If-None-Match": '"x"' });
  });

  test("loads files with a hash in their names", async () => {
    const { text } = await anonymous(`GET ${path}`, 200);

    const assets = findAssets(text);
    expect(assets.length).toBeGreaterThanOrEqual(2);
    for (const address of assets) expect(address).toMatch(/-[0-9a-f]{16}\.(?:js|css)$/);
  });

  /** Fetches a file that the page loads, and reads it chunk by chunk. */
  async function fetchAsset(address: string, acceptEncoding: string) {
    const init = { headers: { "Accept-Encoding": acceptEncoding } };
    const { headers, body } = await service.fetch(`GET /${address}`, init);
    const chunks = await Array.fromAsync(body ?? []);
    return { headers, chunks, bytes: new Uint8Array(Buffer.concat(chunks)) };
  }

  test("loads files as gzip if the client accepts that", async () => {
    const page = await anonymous(`GET ${path}`, 200);

    for (const address of findAssets(page.text)) {
      const plain = await anonymous(`GET /${address}`, 200);
      const { headers, bytes } = await fetchAsset(address, "br, GZIP;q=0.5");
      expect(headers.get("Content-Encoding")).toBe("gzip");
      const text = new TextDecoder().decode(Bun.gunzipSync(bytes));
      // Not toBe(), which would print megabytes.
      expect(text === plain.text).toBe(true);
    }
  });

  test("loads files uncompressed if the client refuses gzip", async () => {
    const page = await anonymous(`GET ${path}`, 200);

    for (const address of findAssets(page.text)) {
      const plain = await anonymous(`GET /${address}`, 200);
      const { headers, bytes } = await fetchAsset(address, "gzip; q=0.0, br");
      expect(headers.get("Content-Encoding")).toBeNull();
      expect(new TextDecoder().decode(bytes) === plain.text).toBe(true);
    }
  });

  describe.each(["br, GZIP;q=0.5", "gzip; q=0.0, br"])("with Accept-Encoding: %s", (accepted) => {
    test("loads files to be cached for a year, by encoding", async () => {
      const page = await anonymous(`GET ${path}`, 200);

      for (const address of findAssets(page.text)) {
        const { headers } = await fetchAsset(address, accepted);
        expect(headers.get("Cache-Control")).toBe("public, max-age=31536000, immutable");
        expect(headers.get("Vary")).toContain("Accept-Encoding");
      }
    });

    test("loads scripts and style sheets, by their types", async () => {
      const page = await anonymous(`GET ${path}`, 200);

      for (const address of findAssets(page.text)) {
        const { headers } = await fetchAsset(address, accepted);
        const type = address.endsWith(".js") ? "text/javascript" : "text/css";
        expect(headers.get("Content-Type")).toBe(`${type}; charset=utf-8`);
      }
    });

    test("loads files in chunks of up to 64 KiB", async () => {
      const page = await anonymous(`GET ${path}`, 200);

      for (const address of findAssets(page.text)) {
        const { chunks } = await fetchAsset(address, accepted);
        expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThanOrEqual(65_536);
      }
    });
  });

  test("loads its files below a base path, too", async () => {
    const page = await withBasePath.anonymous(`GET ${path}`, 200);

    const assets = findAssets(page.text);
    expect(assets.length).toBeGreaterThanOrEqual(2);
    for (const address of assets) await withBasePath.anonymous(`GET /${address}`, 200);
  });

  test("isn't outside the base path", async () => {
    const { status } = await fetchAtRoot(path);

    expect(status).toBe(404);
  });
});

describe("the OpenAPI document", () => {
  test("is JSON that is revalidated each time: a 304 as long as it's the same", async () => {
    const { headers } = await anonymous("GET /openapi.json", 200);
    const etag = headers.get("ETag") ?? "";
    expect(etag).toMatch(/^W\/".+"$/);
    expect(headers.get("Content-Type")).toBe("application/json");
    expect(headers.get("Cache-Control")).toBe("no-cache");

    const strongEtag = etag.slice("W/".length);
    for (const condition of [etag, strongEtag, `"x", ${etag}`, "*"]) {
      const known = { "If-None-Match": condition };
      const unchanged = await anonymous("GET /openapi.json", 304, undefined, known);
      expect(unchanged.text).toBe("");
      expect(unchanged.headers.get("ETag")).toBe(etag);
    }
  });

  test("is sent again to a client that knows another version", async () => {
    await anonymous("GET /openapi.json", 200, undefined, { "If-None-Match": '"x"' });
  });

  test("is compressed for a client that accepts gzip", async () => {
    const plain = await anonymous("GET /openapi.json", 200);
    expect(plain.headers.get("Vary")).toContain("Accept-Encoding");

    const response = await service.fetch("GET /openapi.json", {
      headers: { "Accept-Encoding": "gzip" },
    });

    expect(response.headers.get("Content-Encoding")).toBe("gzip");
    const text = new TextDecoder().decode(Bun.gunzipSync(await response.bytes()));
    expect(text).toBe(plain.text);
  });

  test("can be read by a page of another origin that sends its token", async () => {
    const { headers } = await anonymous("OPTIONS /openapi.json", 204);

    expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
    expect(headers.get("Access-Control-Allow-Methods")).toBe("GET, HEAD, OPTIONS");
    expect(headers.get("Access-Control-Allow-Headers")).toContain("Authorization");
  });
});

describe("if the operator allows only some origins,", () => {
  const { call } = openGarden("SQLite", {
    corsOrigins: ["https://a.example", "https://b.example"],
  });

  /** Lists plants from a page of this origin. */
  async function listFrom(origin: string): Promise<Headers> {
    const { headers } = await call("GET /plants", 200, undefined, { Origin: origin });
    return headers;
  }

  test.each(["https://a.example", "https://b.example"])("%s can read responses", async (origin) => {
    const headers = await listFrom(origin);

    expect(headers.get("Access-Control-Allow-Origin")).toBe(origin);
    expect(headers.get("Vary")).toContain("Origin");
  });

  test.each(["https://c.example", "https://a.example.evil.example", "null"])(
    "%s can read none",
    async (origin) => {
      const headers = await listFrom(origin);

      expect(headers.get("Access-Control-Allow-Origin")).toBeNull();
      expect(headers.get("Vary")).toContain("Origin");
    },
  );

  test("a cached response isn't sent with the origin of another request", async () => {
    // The list is cached from the second request on.
    const requests = [
      { origin: "https://a.example", allowed: "https://a.example" },
      { origin: "https://b.example", allowed: "https://b.example" },
      { origin: "https://a.example", allowed: "https://a.example" },
      { origin: "https://b.example", allowed: "https://b.example" },
      { origin: "https://c.example", allowed: null },
      { origin: "https://a.example.evil.example", allowed: null },
      { origin: "null", allowed: null },
      { origin: "https://a.example", allowed: "https://a.example" },
      { origin: "https://b.example", allowed: "https://b.example" },
    ];

    for (const { origin, allowed } of requests) {
      const headers = await listFrom(origin);
      expect(headers.get("Access-Control-Allow-Origin")).toBe(allowed);
      expect(headers.get("Vary")).toContain("Origin");
    }
  });

  test("a response that also varies by Accept says both", async () => {
    const { headers } = await call("GET /events", 200, undefined, {
      Origin: "https://a.example",
    });

    expect(headers.get("Vary")?.split(", ").toSorted()).toEqual(["Accept", "Origin"]);
  });
});
