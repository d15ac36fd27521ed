/**
 * What a hostile client sends, byte for byte, and the expected outcome: bodies that lie about where
 * they end, requests hidden in others, pipelines, sizes, and connections that end too soon.
 */

/** Waits a little, so that what follows is a packet of its own. */
export const pause = Symbol("pause");
/** Waits for the next response. */
export const answered = Symbol("answered");
/** Closes the client's side; it goes on reading. */
export const halfClose = Symbol("half-close");
/** Closes the connection. */
export const leave = Symbol("leave");

export type Step = string | typeof pause | typeof answered | typeof halfClose | typeof leave;

/**
 * The outcome is every status in order, and what happens to the connection: "open" for the next
 * request, "closed", or "waiting" for more of this one. "closed" alone means no response. "refused"
 * is any status from 400 on: which one the runtime chooses may depend on the processor.
 */
export type HostileCase = readonly [name: string, sent: string | readonly Step[], outcome: string];

function expecting(
  outcome: string,
  cases: Readonly<Record<string, string | readonly Step[]>>,
): HostileCase[] {
  return Object.entries(cases).map(([name, sent]) => [name, sent, outcome]);
}

/** The same outcome for each of these values. */
function trying(
  what: string,
  values: readonly string[],
  send: (value: string) => string,
): HostileCase[] {
  return values.map((value) => [`${what} ${JSON.stringify(value)}`, send(value), "refused closed"]);
}

/** Stands for the real token, and is as long, so that lengths can be computed beforehand. */
export const tokenPlaceholder = `plant_${"T".repeat(49)}`;

/** A plant that exists before every case, and must still exist after it. */
export const victimId = 7;

const host = "Host: plants.example";
const authorization = `Authorization: Bearer ${tokenPlaceholder}`;
const json = "Content-Type: application/json";
const chunked = "Transfer-Encoding: chunked";
const lastChunk = "0\r\n\r\n";
const fern = '{"name":"Fern"}';
const kibi = 1024;

function head(...lines: readonly string[]): string {
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** A good list request, with more headers. */
function get(...headers: readonly string[]): string {
  return head("GET /plants?limit=0 HTTP/1.1", host, authorization, ...headers);
}

/** The head of a create; the headers frame its body. */
function post(...headers: readonly string[]): string {
  return head("POST /plants HTTP/1.1", host, authorization, json, ...headers);
}

/** A good create, framed by its length. */
function create(body: string, ...headers: readonly string[]): string {
  return post(length(body.length), ...headers) + body;
}

function length(value: string | number): string {
  return `Content-Length: ${value}`;
}

function chunk(data: string): string {
  return `${data.length.toString(16)}\r\n${data}\r\n`;
}

function chunks(...text: readonly string[]): string {
  return post(chunked) + text.join("");
}

/** A body of one chunk under a size line of any kind. */
function sized(size: string, rest = lastChunk): string {
  return chunks(`${size}\r\n${fern}\r\n${rest}`);
}

/** What an attacker wants to run on somebody else's connection. */
const smuggled = head(`DELETE /plants/${victimId} HTTP/1.1`, host, authorization);
/** One request for a parser that uses the length, two for one that uses the chunks. */
const hiddenBehindChunks = lastChunk + smuggled;
const wholeInChunks = chunk(fern) + lastChunk;

const framings: readonly HostileCase[] = [
  ...expecting("refused closed", {
    "a length that covers a request behind the last chunk (CL.TE)":
      post(length(hiddenBehindChunks.length), chunked) + hiddenBehindChunks,
    "a length that ends within the chunks (TE.CL)":
      post(length(4), chunked) + chunk(smuggled) + lastChunk,
    "a length and chunks that agree": post(length(wholeInChunks.length), chunked) + wholeInChunks,
    "a length and an unknown encoding": post(length(fern.length), "Transfer-Encoding: cow") + fern,
    "Transfer-Encoding twice, one of them unknown (TE.TE)":
      post(chunked, "Transfer-Encoding: cow") + hiddenBehindChunks,
    "a space before the colon of Transfer-Encoding":
      post("Transfer-Encoding : chunked") + hiddenBehindChunks,
    "Transfer-Encoding folded onto a second line":
      post("Transfer-Encoding:\r\n chunked") + hiddenBehindChunks,
    "Transfer-Encoding behind a bare line feed":
      post("X: y\nTransfer-Encoding: chunked") + hiddenBehindChunks,
    "Transfer-Encoding behind a bare carriage return":
      post("X: y\rTransfer-Encoding: chunked", length(fern.length)) + fern,
    "chunks in HTTP/1.0": post(chunked).replace("/1.1", "/1.0") + wholeInChunks,
    "the same length twice": create(fern, length(fern.length)) + smuggled,
    "two lengths on a GET": get(length(smuggled.length), length(0)) + smuggled,
    "a GET whose chunks hold a request": get(chunked) + chunk(smuggled) + lastChunk,
  }),
  ...expecting("400 open", {
    "Transfer-Encoding with an underscore":
      post("Transfer_Encoding: chunked", length(hiddenBehindChunks.length)) + hiddenBehindChunks,
    "a request where a body should be, on a GET": get(length(smuggled.length)) + smuggled,
    "neither length nor chunks": post(),
  }),
  ...trying("Transfer-Encoding of", ["xchunked", "gzip, chunked", "chunked\0", ""], (value) => {
    return post(`Transfer-Encoding: ${value}`) + hiddenBehindChunks;
  }),
  ...trying(
    "Content-Length of",
    ["15, 15", "-1", "+15", "0x0f", "18446744073709551631"],
    (value) => {
      return post(length(value)) + fern;
    },
  ),
];

const chunkings: readonly HostileCase[] = [
  ["a chunk for every byte", chunks(...Array.from(fern, chunk), lastChunk), "201 open"],
  ["no last chunk", chunks(chunk(fern)), "waiting"],
  ["a last chunk without its empty line", chunks(chunk(fern), "0\r\n"), "201 waiting"],
  ["a request behind the last chunk", chunks(wholeInChunks, post(length(0))), "closed"],
  ...expecting("refused closed", {
    "an extension that hides a chunk behind a line feed": sized(
      `f;\n${fern}\r\n0\r\n\r\n`,
      lastChunk + smuggled,
    ),
    "an extension of 20 KiB": sized(`f;${"a".repeat(20 * kibi)}`),
    "a size line that ends with a bare line feed": chunks(`f\n${fern}\r\n${lastChunk}`),
    "data without an end": chunks(`f\r\n${fern}${lastChunk}`, smuggled),
    "a last chunk and a request in place of its empty line": chunks(chunk(fern), "0\r\n", smuggled),
    "a request in place of the last chunk": chunks(chunk(fern), smuggled),
    "a trailer that names another length": chunks(chunk(fern), "0\r\nContent-Length: 5\r\n\r\n"),
  }),
  ...trying("a size of", ["0xf", "e", "10", "", "1000000000000000f"], (size) =>
    sized(size, lastChunk + smuggled),
  ),
];

function target(text: string, method = "GET"): string {
  return head(`${method} ${text} HTTP/1.1`, host, authorization);
}

const heads: readonly HostileCase[] = [
  ...expecting("refused closed", {
    "bare line feeds throughout": get().replaceAll("\r\n", "\n"),
    "a token folded onto a second line": head(
      "GET /plants HTTP/1.1",
      host,
      `Authorization: Bearer\r\n ${tokenPlaceholder}`,
    ),
    "a name with a zero byte": get("X\0Y: a"),
    "a proxy's greeting (PROXY v1)": `PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n${get()}`,
    "the greeting of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT to an authority": target("plants.example:443", "CONNECT"),
    "headers of 16 KiB and 1 byte": getOfSize(16 * kibi + 1),
    "headers that never end": `${get().slice(0, -2)}X: ${"x".repeat(100 * kibi)}`,
    "199 headers": get(...many(197)),
    "a target that never ends": `GET /${"x".repeat(100 * kibi)}`,
  }),
  ...expecting("200 open", {
    "headers of 16 KiB": getOfSize(16 * kibi),
    "198 headers": get(...many(196)),
    "the absolute form of another host": target("http://other.example/plants?limit=0"),
    "Connection names the token's header": get("Connection: Authorization"),
    "an upgrade to HTTP/2": get("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"),
  }),
  ...expecting("400 open", {
    "an encoded id": target(`/plants/%3${victimId}`, "DELETE"),
    "an id with a zero byte": target(`/plants/${victimId}%00`, "DELETE"),
    "an encoded line end": target("/plants?limit=0%0d%0aX:%20y"),
  }),
  ["encoded dots in the files of the pages", target("/assets/..%2f..%2fpackage.json"), "404 open"],
  ["Connection: close, and a request behind it", get("Connection: close") + smuggled, "200 closed"],
  [
    "Expect: 100-continue, and the body when it is asked for",
    [post(length(15), "Expect: 100-continue"), answered, fern],
    "100 201 open",
  ],
];

/** A good request whose head has exactly so many bytes. */
function getOfSize(bytes: number): string {
  return get(`X-Filler: ${"x".repeat(bytes - get("X-Filler: ").length)}`);
}

function many(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `X-${at}: x`);
}

const bodyBytesMax = 64 * kibi;
/** Of JSON Lines; no longer body is ever accepted. */
const longestBytes = kibi * kibi;

const sizes: readonly HostileCase[] = [
  ["a length over the limit, before any body", post(length(bodyBytesMax + 1)), "413 waiting"],
  ...expecting("413 closed", {
    "a length over every limit, and a request for a body":
      post(length(longestBytes + 1)) + smuggled,
    "chunks over the limit, and a request behind them": [
      chunks(chunk(fern.padEnd(bodyBytesMax + 1))),
      pause,
      lastChunk + smuggled,
    ],
  }),
  ["a body of 1 MiB for a GET", get(length(longestBytes)) + " ".repeat(longestBytes), "400 open"],
];

function hiding(request: string, ...headers: readonly string[]): string {
  return head(`${request} HTTP/1.1`, host, ...headers, length(smuggled.length)) + smuggled;
}

const connections: readonly HostileCase[] = [
  ["ten lists at once", get().repeat(10), `${"200 ".repeat(10)}open`],
  ["a malformed request between two lists", `${get()}GET\r\n\r\n${smuggled}`, "200 refused closed"],
  ["a closing request first", get() + get("Connection: close") + smuggled, "200 200 closed"],
  ["a create behind a list", get() + create(fern), "200 201 open"],
  ...expecting("closed", {
    "a list behind a create that waits for the disk": create(fern) + get(),
    "a body that comes with the next request": [post(length(15)), pause, fern + get()],
    "half a body, and the client closes its side": [post(length(15)), fern.slice(0, 5), halfClose],
    "chunks without a last one, and the client closes its side": [chunks(chunk(fern)), halfClose],
    "a create, and the client leaves": [create(fern), leave],
    "half a body, and the client leaves": [post(length(15)), "{", pause, leave],
  }),
  ["one after another", [get(), answered, create(fern), answered, get()], "200 201 200 open"],
  ["a request in two packets, cut in the line end", [get().slice(0, -1), pause, "\n"], "200 open"],
  ["a request as a body of a wrong type", hiding("POST /plants", authorization), "415 open"],
  ["a request as a body without a token", hiding("POST /plants", json), "401 open"],
  ["a request as a body for no path", hiding("POST /nothing"), "404 open"],
  ["a list, and the client closes its side", [get(), halfClose], "200 closed"],
  ["a body that lacks one byte", post(length(16)) + fern, "waiting"],
  ["a body that has one byte too many", post(length(14)) + fern, "400 refused closed"],
];

export const hostileCases = [...framings, ...chunkings, ...heads, ...sizes, ...connections];
