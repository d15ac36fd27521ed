/**
 * The pages in the browser: the console, the API reference, and the files they load. They are built
 * on the first request and cached; the files are named by a hash of their content.
 */
import * as v from "valibot";
import { PlantStoreError } from "../../domain/errors.ts";
import { memoizeAsync } from "../../shared/promises.ts";
import type { Operation } from "../operation.ts";
import type { PageSource } from "../page-sources.ts";
import type { Reply } from "../reply.ts";
import { ChunkSizes, type Source } from "../stream.ts";

/** Only what this service sends, and no inline code or style. */
const referencePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'self'",
].join("; ");

/** And no HTML from text, which the reference's renderer makes. */
const consolePolicy = `${referencePolicy}; require-trusted-types-for 'script'; trusted-types 'none'`;

const loadConsole = memoizeAsync(async () => {
  const { readConsole } = await import("../page-sources.ts");
  return buildPage("console", await readConsole());
});
const loadReference = memoizeAsync(async () => {
  const { readReference } = await import("../page-sources.ts");
  return buildPage("reference", await readReference());
});

/** `/v1` without its slash: the page's relative addresses would lead out of the base path. */
export const redirectToConsole: Operation = {
  name: "redirectToConsole",
  method: "GET",
  path: "",
  run: async ({ service }) => ({
    status: 308,
    headers: { Location: `${service.basePath}/` },
  }),
};

/** A fern's leaf. */
const icon =
  "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>" +
  "<path d='M27 4C12 4 5 11 5 20c0 2 .4 4 1 6l2-5c5 1 10-1 13-5 3-3 5-7 6-12z' fill='#477a58'/>" +
  "<path d='M5 29C7 20 13 14 20 11' fill='none' stroke='#f6f3ea' stroke-width='1.6'/></svg>";

export const webPages: readonly Operation[] = [
  {
    name: "readIcon",
    method: "GET",
    // Where browsers look for one if a response, such as a probe's, names none.
    path: "/favicon.ico",
    isAtRoot: true,
    run: async () => ({
      status: 200,
      contentType: "image/svg+xml",
      headers: { "Cache-Control": "public, max-age=604800" },
      body: icon,
    }),
  },
  {
    name: "readConsole",
    method: "GET",
    path: "/",
    run: async ({ request }) => pageReply(await loadConsole(), consolePolicy, request.headers),
  },
  {
    name: "readReference",
    method: "GET",
    path: "/docs",
    run: async ({ request }) => pageReply(await loadReference(), referencePolicy, request.headers),
  },
  {
    name: "readAsset",
    method: "GET",
    path: "/assets/{name}",
    parameters: { name: { in: "path", schema: v.string(), description: "The file's name." } },
    async run({ request }, { parameters }) {
      const name = String(parameters.name);
      // Another process may have served the page that links to it.
      await (name.startsWith("reference") ? loadReference() : loadConsole());
      const file = assets.get(name);
      if (!file) throw new PlantStoreError("not-found", "There is nothing at this path.");
      const cacheForever = { "Cache-Control": "public, max-age=31536000, immutable" };
      return fileReply(file, cacheForever, request.headers);
    },
  },
];

const encoder = new TextEncoder();

interface PageFile {
  readonly contentType: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzipped: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

const scriptType = "text/javascript; charset=utf-8";
/** The scripts and style sheets of the pages that were built so far. */
const assets = new Map<string, PageFile>();

/** Assets have relative addresses, so a page needn't know the base path. */
async function buildPage(name: string, source: PageSource): Promise<PageFile> {
  const { page, style, script, chunks = {}, library } = source;
  let text = page.replace("{icon}", `data:image/svg+xml,${encodeURIComponent(icon)}`);
  text = text.replace("{style}", await addAsset(name, "css", style));
  text = text.replace("{script}", await addAsset(name, "js", script));
  for (const [chunk, code] of Object.entries(chunks)) {
    assets.set(chunk, await createFile(scriptType, code));
  }
  if (library) text = text.replace("{library}", await addAsset(`${name}-library`, "js", library));
  return createFile("text/html; charset=utf-8", text);
}

async function addAsset(stem: string, extension: "js" | "css", text: string): Promise<string> {
  const name = `${stem}-${hash(text)}.${extension}`;
  const type = extension === "js" ? scriptType : "text/css; charset=utf-8";
  assets.set(name, await createFile(type, text));
  return `assets/${name}`;
}

async function createFile(contentType: string, text: string): Promise<PageFile> {
  // Not imported above: they take 15 ms to load, and most processes never serve a page.
  const { gzip } = await import("node:zlib");
  const { promisify } = await import("node:util");
  // Off the event loop: the renderer is megabytes long.
  const gzipped = new Uint8Array(await promisify(gzip)(text, { level: 9 }));
  // Weak, because the plain and the compressed form share it.
  return { contentType, plain: encoder.encode(text), gzipped, etag: `W/"${hash(text)}"` };
}

function hash(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
}

function pageReply(file: PageFile, policy: string, requestHeaders: Headers): Reply {
  const headers = {
    "Content-Security-Policy": policy,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
  };
  return fileReply(file, headers, requestHeaders);
}

function fileReply(file: PageFile, more: Record<string, string>, requestHeaders: Headers): Reply {
  const { contentType, etag } = file;
  const headers = { ...more, ETag: etag, Vary: "Accept-Encoding, Origin" };
  const known = requestHeaders.get("if-none-match");
  // Without W/: whether a tag is weak does not matter here.
  if (known === "*" || known?.includes(etag.slice(2))) return { status: 304, headers };
  if (!acceptsGzip(requestHeaders.get("accept-encoding") ?? "")) {
    return { status: 200, contentType, headers, body: toBody(file.plain) };
  }
  const gzipHeaders = { ...headers, "Content-Encoding": "gzip" };
  return { status: 200, contentType, headers: gzipHeaders, body: toBody(file.gzipped) };
}

/**
 * The runtime hands a whole body to the kernel at once, and with megabytes that takes milliseconds,
 * in which nothing else runs. So a large file is sent in chunks.
 */
const wholeBytesMax = 64 * 1024;
const chunkSizes = new ChunkSizes(4_096, wholeBytesMax, 4 * 1024 * 1024);

function toBody(bytes: Uint8Array<ArrayBuffer>): Reply["body"] {
  if (bytes.byteLength <= wholeBytesMax) return bytes;
  let at = 0;
  const chunks: Source<Uint8Array> = {
    async next() {
      if (at >= bytes.byteLength) return undefined;
      const chunk = bytes.subarray(at, at + chunkSizes.size);
      at += chunk.byteLength;
      return chunk;
    },
    close: chunkSizes.open(),
  };
  return chunks;
}

/** Whether gzip is listed, and not with `q=0`. */
function acceptsGzip(codings: string): boolean {
  const listed = /(?:^|,)\s*gzip\s*(?:;\s*q=([\d.]+)\s*)?(?:,|$)/i.exec(codings);
  return listed !== null && Number(listed[1] ?? 1) > 0;
}
