/** The pages in the browser: the console, the API reference, and the files they load. */
import * as v from "valibot";
import { PlantStoreError } from "../domain/errors.ts";
import { type Input, openOperation, type Reply } from "./operation.ts";
import type { PageFile } from "./page-files.ts";

/** Only what this service sends, no inline code or style, and no HTML from text. */
const consolePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** The renderer adds style elements and HTML to the page, but no scripts. */
const referencePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'none'",
].join("; ");

const text = v.string();
const transfer = {
  "Accept-Encoding": { in: "header", schema: text, description: "gzip?", example: "gzip" },
  "If-None-Match": {
    in: "header",
    schema: text,
    description: "The ETag of the cached copy.",
    example: '"a"',
  },
} as const;

const html = {
  status: 200,
  description: "The page.",
  contentType: "text/html; charset=utf-8",
  schema: "Text",
} as const;

const readConsole = openOperation({
  name: "readConsole",
  path: "/",
  summary: "The console",
  description: "A page for the plants of one garden.",
  parameters: transfer,
  success: html,
  async run(_context, input) {
    const { loadConsole } = await loadFiles();
    return pageReply(await loadConsole(), consolePolicy, input);
  },
});

const readReference = openOperation({
  name: "readReference",
  path: "/docs",
  summary: "The API reference",
  description: "A page that shows the OpenAPI document and can try it.",
  parameters: transfer,
  success: html,
  async run(_context, input) {
    const { loadReference } = await loadFiles();
    return pageReply(await loadReference(), referencePolicy, input);
  },
});

const readAsset = openOperation({
  name: "readAsset",
  path: "/assets/{name}",
  summary: "A file of a page",
  description:
    "A script or style sheet. Its name holds a hash of its content, so it never changes.",
  parameters: {
    ...transfer,
    name: { in: "path", schema: text, description: "The file's name.", example: "console-1.js" },
  },
  success: { ...html, description: "The file.", contentType: "text/javascript; charset=utf-8" },
  problems: ["not-found"],
  async run(_context, input) {
    const { findAsset } = await loadFiles();
    const file = await findAsset(String(input.parameters.name));
    if (!file) throw new PlantStoreError("not-found", "There is nothing at this path.");
    return fileReply(file, { "Cache-Control": "public, max-age=31536000, immutable" }, input);
  },
});

export const pages = [readConsole, readReference, readAsset];

/** Loaded late: the start does not need it. */
export const loadFiles = () => import("./page-files.ts");

function pageReply(file: PageFile, policy: string, input: Input): Reply {
  const headers = {
    "Content-Security-Policy": policy,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
  };
  return fileReply(file, headers, input);
}

function fileReply(file: PageFile, more: Record<string, string>, { parameters }: Input): Reply {
  const { contentType, etag } = file;
  const headers = { ...more, ETag: etag, Vary: "Accept-Encoding, Origin" };
  const held = itemsOf(parameters["If-None-Match"]);
  if (held.some((each) => each.trim() === etag)) return { status: 304, headers };
  if (!acceptsGzip(itemsOf(parameters["Accept-Encoding"]))) {
    return { status: 200, contentType, headers, body: file.plain };
  }
  const gzipHeaders = { ...headers, "Content-Encoding": "gzip" };
  return { status: 200, contentType, headers: gzipHeaders, body: file.gzipped };
}

/** Longer than any browser's. */
const listCharactersMax = 1_000;

/** Ignores a list that is too long: splitting 16,000 items took milliseconds. */
function itemsOf(header: unknown): readonly string[] {
  const text = String(header ?? "");
  return text.length > listCharactersMax ? [] : text.split(",");
}

/** Whether gzip is listed, and not with `q=0`. */
function acceptsGzip(codings: readonly string[]): boolean {
  return codings.some((coding) => {
    const [name = "", weight = "q=1"] = coding.split(";").map((part) => part.trim().toLowerCase());
    return name === "gzip" && !/^q=0(?:\.0*)?$/.test(weight);
  });
}
