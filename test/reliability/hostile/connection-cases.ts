/** Sizes on both sides of every limit, pipelines, and connections that end too soon. */
import {
  answered,
  authorization,
  chunk,
  chunked,
  create,
  expecting,
  fern,
  get,
  type HostileCase,
  halfClose,
  head,
  host,
  json,
  lastChunk,
  leave,
  pause,
  post,
  smuggled,
} from "./hostile-case.ts";

const bodyBytesMax = 64 * 1024;
const kibi = 1024;
/** Of JSON Lines; no longer body is ever accepted. */
const longestBytes = kibi * kibi;

/** A good request whose head has exactly so many bytes. */
function getOfSize(bytes: number): string {
  const filler = "x".repeat(bytes - get("X-Filler: ").length);
  return get(`X-Filler: ${filler}`);
}

function many(count: number, bytesEach = 8): string[] {
  return Array.from({ length: count }, (_, at) => `X-${at}: `.padEnd(bytesEach, "x"));
}

/** A good plant, padded with white space. */
function padded(bytes: number): string {
  return fern.padEnd(bytes);
}

export const sizeCases: readonly HostileCase[] = [
  ...expecting("200 open", {
    "headers of 16 KiB less 1 byte": getOfSize(16 * kibi - 1),
    "headers of 16 KiB": getOfSize(16 * kibi),
    "a name of 8 KiB": get(`${"x".repeat(8 * kibi)}: a`),
    "198 headers": get(...many(196)),
    "many headers of 10 KiB together": get(...many(100, 100)),
  }),
  ...expecting("431 closed", {
    "headers of 16 KiB and 1 byte": getOfSize(16 * kibi + 1),
    "headers of 1 MiB": getOfSize(kibi * kibi),
    "headers that never end": `${get().slice(0, -2)}X: ${"x".repeat(100 * kibi)}`,
    "a name of 20 KiB": get(`${"x".repeat(20 * kibi)}: a`),
    "199 headers": get(...many(197)),
    "many headers of 20 KiB together": get(...many(100, 200)),
    "a target of 20 KiB": head(`GET /${"x".repeat(20 * kibi)} HTTP/1.1`, host),
    "a target that never ends": `GET /${"x".repeat(100 * kibi)}`,
  }),
  ["a target of 8 KiB", head(`GET /${"x".repeat(8 * kibi)} HTTP/1.1`, host), "404 open"],
  ...expecting("400 open", {
    "a query of 8 KiB": get().replace("limit=0", `x=${"x".repeat(8 * kibi)}`),
    "a thousand parameters of the same good name": get().replace(
      "limit=0",
      "&limit=1".repeat(1_000),
    ),
  }),
  ...expecting("201 open", {
    "a body of exactly 64 KiB": create(padded(bodyBytesMax)),
    "chunks of exactly 64 KiB": post(chunked) + chunk(padded(bodyBytesMax)) + lastChunk,
  }),
  ["a body of 64 KiB and 1 byte", create(padded(bodyBytesMax + 1)), "413 open"],
  ...expecting("413 waiting", {
    "a length over the limit, before any body": post(`Content-Length: ${bodyBytesMax + 1}`),
    "a length over the limit, and a request for a body":
      post(`Content-Length: ${bodyBytesMax + 1}`) + smuggled,
  }),
  ...expecting("413 closed", {
    "a body of 1 MiB and 1 byte": create(padded(longestBytes + 1)),
    "a length over every limit, before any body": post(`Content-Length: ${longestBytes + 1}`),
    "a length over every limit, and a request for a body":
      post(`Content-Length: ${longestBytes + 1}`) + smuggled,
    "chunks of 64 KiB and 1 byte": post(chunked) + chunk(padded(bodyBytesMax + 1)) + lastChunk,
    "chunks over the limit that never end": [
      post(chunked),
      pause,
      ...Array(5).fill(chunk(" ".repeat(0x4000))),
    ],
    "chunks over the limit, and a request behind them": [
      post(chunked) + chunk(padded(bodyBytesMax + 1)),
      pause,
      lastChunk + smuggled,
    ],
  }),
  ...expecting("400 open", {
    "a body of 1 MiB for a GET": get(`Content-Length: ${longestBytes}`) + padded(longestBytes),
  }),
  ...expecting("400 closed", {
    "a body over 1 MiB for a GET":
      get(`Content-Length: ${longestBytes + 1}`) + padded(longestBytes + 1),
  }),
  ...expecting("404 open", {
    "a body of 1 MiB for a path that is not there":
      head("POST /nothing HTTP/1.1", host, `Content-Length: ${longestBytes}`) +
      padded(longestBytes),
  }),
  ...expecting("401 open", {
    "a body of 1 MiB without a token":
      head("POST /plants HTTP/1.1", host, `Content-Length: ${longestBytes}`) + padded(longestBytes),
  }),
];

const missing = head("GET /nothing HTTP/1.1", host);

const pipelineCases: readonly HostileCase[] = [
  ["two lists at once", get() + get(), "200 200 open"],
  ...expecting(`${"200 ".repeat(10)}open`, {
    "ten lists at once": get().repeat(10),
  }),
  ["a refused request between two lists", get() + missing + get(), "200 404 200 open"],
  ...expecting("200 400 closed", {
    "a malformed request between two lists": `${get()}GET\r\n\r\n${smuggled}`,
    "a request with a bad length between two lists": get() + post("Content-Length: -1") + smuggled,
  }),
  ...expecting("200 200 closed", {
    "a closing request between two lists": get() + get("Connection: close") + smuggled,
  }),
  ["a create behind a list", get() + create(fern), "200 201 open"],
  ...expecting("closed", {
    "a list behind a create that waits for the disk": create(fern) + get(),
    "two creates at once": create(fern) + create(fern),
    "a body that comes with the next request": [post("Content-Length: 15"), pause, fern + get()],
  }),
  ["a refused create before a list", create("{}") + get(), "400 200 open"],
  ...expecting("200 201 200 open", {
    "one request after another": [get(), answered, create(fern), answered, get()],
  }),
  ...expecting("200 open", {
    "a request in two packets, cut in the method": ["GE", pause, get().slice(2)],
    "a request in two packets, cut in the line end": [get().slice(0, -1), pause, "\n"],
  }),
  ...expecting("415 open", {
    "a body of a refused request that looks like one":
      head("POST /plants HTTP/1.1", host, authorization, `Content-Length: ${smuggled.length}`) +
      smuggled,
  }),
  ...expecting("401 open", {
    "a body of a request without a token that looks like one":
      head("POST /plants HTTP/1.1", host, json, `Content-Length: ${smuggled.length}`) + smuggled,
  }),
  ...expecting("404 open", {
    "a body of a request for nothing that looks like one":
      head("POST /nothing HTTP/1.1", host, `Content-Length: ${smuggled.length}`) + smuggled,
  }),
];

const endingCases: readonly HostileCase[] = [
  ...expecting("closed", {
    "nothing, and the client closes its side": [halfClose],
    "half a head, and the client closes its side": ["GET /pla", halfClose],
    "half a body, and the client closes its side": [
      post("Content-Length: 15"),
      fern.slice(0, 5),
      halfClose,
    ],
    "half a chunk, and the client closes its side": [
      post(chunked),
      `f\r\n${fern.slice(0, 5)}`,
      halfClose,
    ],
    "chunks without a last one, and the client closes its side": [
      post(chunked),
      chunk(fern),
      halfClose,
    ],
    "a list, and the client leaves": [get(), leave],
    "half a head, and the client leaves": ["GET /pla", leave],
    "a create, and the client leaves": [create(fern), leave],
    "half a body, and the client leaves": [post("Content-Length: 15"), "{", pause, leave],
    "half a chunk, and the client leaves": [post(chunked), "f\r\n{", pause, leave],
  }),
  ...expecting("200 closed", {
    "a list, and the client closes its side": [get(), halfClose],
    "a list, and the client closes its side once it is answered": [get(), answered, halfClose],
  }),
  ...expecting("waiting", {
    "a body that does not come": post("Content-Length: 15"),
    "a body that lacks one byte": post("Content-Length: 16") + fern,
    "a chunk that does not come": post(chunked),
  }),
  ["a body that has one byte too many", post("Content-Length: 14") + fern, "400 400 closed"],
];

export const connectionCases = [...pipelineCases, ...endingCases];
