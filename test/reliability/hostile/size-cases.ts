/**
 * Sizes, on both sides of every limit: of a header, of all of them, of their number, target and
 * body.
 */
import {
  chunk,
  chunked,
  create,
  fern,
  get,
  type HostileCase,
  head,
  host,
  lastChunk,
  pause,
  post,
  smuggled,
} from "./hostile-case.ts";

const bodyBytesMax = 64 * 1024;
const kibi = 1024;

/** A good request whose head has exactly so many bytes. */
function getOfSize(bytes: number): string {
  const filler = "x".repeat(bytes - get("X-Filler: ").length);
  return get(`X-Filler: ${filler}`);
}

function many(count: number, bytesEach = 8): string[] {
  return Array.from({ length: count }, (_, at) => `X-${at}: `.padEnd(bytesEach, "x"));
}

/** A good plant, and white space behind it. */
function padded(bytes: number): string {
  return fern.padEnd(bytes);
}

export const sizeCases: readonly HostileCase[] = [
  ["headers of 16 KiB less 1 byte", getOfSize(16 * kibi - 1), "200 open"],
  ["headers of 16 KiB", getOfSize(16 * kibi), "200 open"],
  ["headers of 16 KiB and 1 byte", getOfSize(16 * kibi + 1), "431 closed"],
  ["headers of 1 MiB", getOfSize(kibi * kibi), "431 closed"],
  ["headers that never end", `${get().slice(0, -2)}X: ${"x".repeat(100 * kibi)}`, "431 closed"],
  ["a name of 8 KiB", get(`${"x".repeat(8 * kibi)}: a`), "200 open"],
  ["a name of 20 KiB", get(`${"x".repeat(20 * kibi)}: a`), "431 closed"],
  ["198 headers", get(...many(196)), "200 open"],
  ["199 headers", get(...many(197)), "431 closed"],
  ["many headers of 10 KiB together", get(...many(100, 100)), "200 open"],
  ["many headers of 20 KiB together", get(...many(100, 200)), "431 closed"],
  ["a target of 8 KiB", head(`GET /${"x".repeat(8 * kibi)} HTTP/1.1`, host), "404 open"],
  ["a target of 20 KiB", head(`GET /${"x".repeat(20 * kibi)} HTTP/1.1`, host), "431 closed"],
  ["a target that never ends", `GET /${"x".repeat(100 * kibi)}`, "431 closed"],
  ["a query of 8 KiB", get().replace("limit=0", `x=${"x".repeat(8 * kibi)}`), "400 open"],
  [
    "a thousand parameters of the same good name",
    get().replace("limit=0", "&limit=1".repeat(1_000)),
    "400 open",
  ],
  ["a body of exactly 64 KiB", create(padded(bodyBytesMax)), "201 open"],
  ["a body of 64 KiB and 1 byte", create(padded(bodyBytesMax + 1)), "413 closed"],
  [
    "a length over the limit, before any body",
    post(`Content-Length: ${bodyBytesMax + 1}`),
    "413 closed",
  ],
  [
    "a length over the limit, and a request for a body",
    post(`Content-Length: ${bodyBytesMax + 1}`) + smuggled,
    "413 closed",
  ],
  ["chunks of exactly 64 KiB", post(chunked) + chunk(padded(bodyBytesMax)) + lastChunk, "201 open"],
  [
    "chunks of 64 KiB and 1 byte",
    post(chunked) + chunk(padded(bodyBytesMax + 1)) + lastChunk,
    "413 closed",
  ],
  [
    "chunks over the limit that never end",
    [post(chunked), pause, ...Array(5).fill(chunk(" ".repeat(0x4000)))],
    "413 closed",
  ],
  [
    "chunks over the limit, and a request behind them",
    [post(chunked) + chunk(padded(bodyBytesMax + 1)), pause, lastChunk + smuggled],
    "413 closed",
  ],
  [
    "a body of 1 MiB for a GET",
    get(`Content-Length: ${kibi * kibi}`) + padded(kibi * kibi),
    "400 closed",
  ],
  [
    "a body of 1 MiB for a path that is not there",
    head("POST /nothing HTTP/1.1", host, `Content-Length: ${kibi * kibi}`) + padded(kibi * kibi),
    "404 closed",
  ],
  [
    "a body of 1 MiB without a token",
    head("POST /plants HTTP/1.1", host, `Content-Length: ${kibi * kibi}`) + padded(kibi * kibi),
    "401 closed",
  ],
];
