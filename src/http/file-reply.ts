/** Files that many clients load again and again: compressed once, and revalidated by their ETag. */
import type { Reply } from "./reply.ts";
import { ChunkSizes, type Source } from "./stream.ts";

const encoder = new TextEncoder();

export interface SentFile {
  readonly contentType: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzipped: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

export async function createFile(contentType: string, text: string): Promise<SentFile> {
  // Not imported above: they take 15 ms to load, and most processes never serve a page.
  const { gzip } = await import("node:zlib");
  const { promisify } = await import("node:util");
  // Off the event loop: the renderer is megabytes long.
  const gzipped = new Uint8Array(await promisify(gzip)(text, { level: 9 }));
  // Weak, because the plain and the compressed form share it.
  return { contentType, plain: encoder.encode(text), gzipped, etag: `W/"${hash(text)}"` };
}

export function hash(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
}

export function fileReply(
  file: SentFile,
  more: Record<string, string>,
  requestHeaders: Headers,
): Reply {
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
