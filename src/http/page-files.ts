/** The files of the pages: built on first request, cached, and named by a hash of their content. */
import { promisify } from "node:util";
import { type PageSource, readConsole, readReference } from "./page-sources.ts";

export interface PageFile {
  readonly contentType: string;
  readonly plain: Blob;
  readonly gzipped: Blob;
  readonly etag: string;
}

const assets = new Map<string, PageFile>();

/** Runs `make` once for all callers; after a failure, again for the next one. */
function memoizeAsync<Result>(make: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | undefined;
  return () => {
    result ??= make().catch((error) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}

/** The console's page; its script and style sheet are among the assets from then on. */
export const loadConsole = memoizeAsync(() => makePage("console", readConsole));

/** The API reference's page, likewise. */
export const loadReference = memoizeAsync(() => makePage("reference", readReference));

/** Works even if another process served the page that links to it. */
export async function findAsset(name: string): Promise<PageFile | undefined> {
  await (name.startsWith("reference") ? loadReference() : loadConsole());
  return assets.get(name);
}

/** Assets have relative addresses, so a page needn't know the base path. */
async function makePage(name: string, read: () => Promise<PageSource>): Promise<PageFile> {
  const { page, style, script, library } = await read();
  let text = page.replace("{style}", await addAsset(name, "css", style));
  text = text.replace("{script}", await addAsset(name, "js", script));
  if (library) text = text.replace("{library}", await addAsset(`${name}-library`, "js", library));
  return makeFile("text/html; charset=utf-8", text);
}

async function addAsset(stem: string, extension: "js" | "css", text: string): Promise<string> {
  const type = extension === "js" ? "text/javascript" : "text/css";
  const name = `${stem}-${hash(text)}.${extension}`;
  assets.set(name, await makeFile(`${type}; charset=utf-8`, text));
  return `assets/${name}`;
}

async function makeFile(contentType: string, text: string): Promise<PageFile> {
  // Not imported above: it takes 15 ms to load, and most processes never serve a page.
  const { gzip } = await import("node:zlib");
  // Off the event loop: the renderer is megabytes long.
  const gzipped = new Blob([await promisify(gzip)(text, { level: 9 })]);
  // Weak, because the plain and the compressed form share it.
  return { contentType, plain: new Blob([text]), gzipped, etag: `W/"${hash(text)}"` };
}

function hash(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
}
