/**
 * The pages in the browser: the console, the API reference, and the files they load. They are built
 * on the first request and cached; the files are named by a hash of their content.
 */
import * as v from "valibot";
import { PlantStoreError } from "../../domain/errors.ts";
import { memoizeAsync } from "../../shared/promises.ts";
import { createFile, fileReply, hash, type SentFile } from "../file-reply.ts";
import type { Operation } from "../operation.ts";
import type { PageSource } from "../page-sources.ts";
import type { Reply } from "../reply.ts";

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
    parameters: { plant: { in: "query", schema: v.string(), description: "A plant to open." } },
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

const scriptType = "text/javascript; charset=utf-8";
/** The scripts and style sheets of the pages that were built so far. */
const assets = new Map<string, SentFile>();

/** Assets have relative addresses, so a page needn't know the base path. */
async function buildPage(name: string, source: PageSource): Promise<SentFile> {
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

function pageReply(file: SentFile, policy: string, requestHeaders: Headers): Reply {
  const headers = {
    "Content-Security-Policy": policy,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
  };
  return fileReply(file, headers, requestHeaders);
}
