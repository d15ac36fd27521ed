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

export const lengthCases: readonly HostileCase[] = [
  ...expecting("refused closed", {
    "a length that covers a request behind the last chunk (CL.TE)":
      post(length(hiddenBehindChunks.length), chunked) + hiddenBehindChunks,
    "a length that ends within the chunks (TE.CL)":
      post(length(4), chunked) + chunk(smuggled) + lastChunk,
    "a length and chunks that agree": post(length(wholeInChunks.length), chunked) + wholeInChunks,
    "a length and chunks on a GET":
      get(length(hiddenBehindChunks.length), chunked) + hiddenBehindChunks,
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
    "two lengths, the first shorter": post(length(0), length(15)) + fern,
    "two lengths on a GET": get(length(smuggled.length), length(0)) + smuggled,
    "a space before the colon of Content-Length": post("Content-Length : 15") + fern,
    "a GET whose chunks hold a request": get(chunked) + chunk(smuggled) + lastChunk,
    "a length beyond 32 bits": post(length("4294967311")) + fern,
  }),
  ...expecting("201 open", {
    "chunked in capitals": post("TRANSFER-ENCODING: CHUNKED") + wholeInChunks,
    "a length with zeros before it": post(length("00015")) + fern,
  }),
  ...expecting("400 open", {
    "Transfer-Encoding with an underscore":
      post("Transfer_Encoding: chunked", length(hiddenBehindChunks.length)) + hiddenBehindChunks,
    "a request where a body should be, on a GET": get(length(smuggled.length)) + smuggled,
    "neither length nor chunks": post(),
  }),
  ["a length of 0 on a GET", get(length(0)), "200 open"],
  ...[
    ...["xchunked", "chunkedx", "identity", "gzip, chunked", "chunked, gzip", "chunked, chunked"],
    ...["chunked,", ",chunked", '"chunked"', "chunked;q=1", "\x0bchunked", "\xa0chunked"],
    ...["chunked\x00", "chunked foo", ""],
  ].map(
    (value): HostileCase => [
      `Transfer-Encoding of ${JSON.stringify(value)}`,
      post(`Transfer-Encoding: ${value}`) + hiddenBehindChunks,
      "refused closed",
    ],
  ),
  ...[
    ...["15, 15", "0, 15", "-1", "+15", "0x0f", "1.5e1", "1 5", "15;", "15a", '"15"', "\x0b15"],
    ...["15\x00", "१५", "1_5", "18446744073709551631", "9223372036854775807", "", "NaN"],
  ].map(
    (value): HostileCase => [
      `Content-Length of ${JSON.stringify(value)}`,
      post(length(Buffer.from(value).toString("latin1"))) + fern,
      "refused closed",
    ],
  ),
];

export const chunkCases: readonly HostileCase[] = [
  ...expecting("201 open", {
    "a chunk for every byte": chunks(...Array.from(fern, chunk), lastChunk),
    "a packet for every byte": [
      post(chunked),
      ...Array.from(chunk(fern) + lastChunk).flatMap((byte): Step[] => [pause, byte]),
    ],
    "a size with many zeros before it": sized(`${"0".repeat(40)}f`),
    "an extension": sized('f;a="b"'),
    "extensions on a thousand chunks": chunks(
      ...Array.from(fern.padEnd(1_000), (byte) => `1;${"a".repeat(60)}\r\n${byte}\r\n`),
      lastChunk,
    ),
  }),
  ...expecting("waiting", {
    "a size beyond 53 bits": sized("2000000000000f"),
    "no last chunk": chunks(chunk(fern)),
  }),
  ...expecting("refused closed", {
    "a size beyond 64 bits": sized("1000000000000000f", lastChunk + smuggled),
    "a size that is too small by one": sized("e", lastChunk + smuggled),
    "a size that is too large by one": sized("10", lastChunk + smuggled),
    "an extension that hides a chunk behind a line feed": sized(
      `f;\n${fern}\r\n0\r\n\r\n`,
      lastChunk + smuggled,
    ),
    "an extension that holds a bare carriage return": sized("f;a\rb"),
    "an extension of 20 KiB": sized(`f;${"a".repeat(20 * kibi)}`),
    "a size line that ends with a bare line feed": chunks(`f\n${fern}\r\n${lastChunk}`),
    "data that end with a bare line feed": chunks(`f\r\n${fern}\n${lastChunk}`),
    "data that end with two other characters": chunks(`f\r\n${fern}XX${lastChunk}`, smuggled),
    "data without an end": chunks(`f\r\n${fern}${lastChunk}`, smuggled),
    "a last chunk and a request in place of its empty line": chunks(chunk(fern), "0\r\n", smuggled),
    "a request in place of the last chunk": chunks(chunk(fern), smuggled),
    "a trailer": chunks(chunk(fern), "0\r\nX-Trailer: a\r\n\r\n"),
    "a trailer that names another length": chunks(chunk(fern), "0\r\nContent-Length: 5\r\n\r\n"),
    "a trailer of 20 KiB": chunks(chunk(fern), `0\r\nX: ${"a".repeat(20 * kibi)}\r\n\r\n`),
  }),
  ["a last chunk without its empty line", chunks(chunk(fern), "0\r\n"), "201 waiting"],
  ["an empty body in chunks", chunks(lastChunk), "400 open"],
  ["a request behind the last chunk", chunks(wholeInChunks, post(length(0))), "closed"],
  ...["0xf", "+f", "-1", " f", "g", "f g", "f ", "", "१", "f\x00", "f,f"].map(
    (size): HostileCase => [
      `a size of ${JSON.stringify(size)}`,
      sized(Buffer.from(size).toString("latin1"), lastChunk + smuggled),
      "refused closed",
    ],
  ),
];

function target(text: string, method = "GET"): string {
  return head(`${method} ${text} HTTP/1.1`, host, authorization);
}

export const headCases: readonly HostileCase[] = [
  ...expecting("refused closed", {
    "bare line feeds throughout": get().replaceAll("\r\n", "\n"),
    "a bare line feed behind a header": get("A: b\nC: d"),
    "a folded header": get("X-Folded: a", " b"),
    "a space before a colon": get("X-Spaced : a"),
    "a name with a zero byte": get("X\0Y: a"),
    "a token folded onto a second line": head(
      "GET /plants HTTP/1.1",
      host,
      `Authorization: Bearer\r\n ${tokenPlaceholder}`,
    ),
    "a TLS handshake": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a proxy's greeting (PROXY v1)": `PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n${get()}`,
    "the greeting of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "the authority form": target("plants.example:80"),
    "the form of a file": target("file:///etc/passwd"),
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
    "a header that overrides the method": get("X-HTTP-Method-Override: DELETE"),
    "Connection names the token's header": get("Connection: Authorization"),
    "an upgrade to HTTP/2": get(
      "Connection: Upgrade, HTTP2-Settings",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABkAAQAAP__",
    ),
  }),
  ...expecting("400 open", {
    "an encoded id": target(`/plants/%3${victimId}`, "DELETE"),
    "an id with a zero byte": target(`/plants/${victimId}%00`, "DELETE"),
    "an id with a parameter": target(`/plants/${victimId};a=b`, "DELETE"),
    "an encoded line end": target("/plants?limit=0%0d%0aX:%20y"),
    "a thousand parameters of the same good name": target(`/plants?${"&limit=1".repeat(1_000)}`),
  }),
  ...expecting("404 open", {
    "two slashes and a host": target("//other.example/plants?limit=0"),
    "a slash after an id": target(`/plants/${victimId}/`, "DELETE"),
    "dots in the files of the pages": target("/assets/../../../package.json"),
    "encoded dots in the files of the pages": target("/assets/..%2f..%2fpackage.json"),
  }),
  ...expecting("401 open", {
    "a token in a cookie": head("GET /plants HTTP/1.1", host, `Cookie: token=${tokenPlaceholder}`),
    "a token in Proxy-Authorization": head("GET /plants HTTP/1.1", host, `Proxy-${authorization}`),
  }),
  ["HTTP/1.0", get().replace("/1.1", "/1.0"), "200 closed"],
  ["Connection: close, and a request behind it", get("Connection: close") + smuggled, "200 closed"],
  [
    "an upgrade, and bytes of the new protocol",
    [get("Connection: Upgrade", "Upgrade: x"), answered, "\x00\x01\x02\r\n\r\n"],
    "200 refused closed",
  ],
  [
    "Expect: 100-continue, and the body at once",
    create(fern, "Expect: 100-continue"),
    "100 201 open",
  ],
  [
    "Expect: 100-continue, and the body when it is asked for",
    [post(length(15), "Expect: 100-continue"), answered, fern],
    "100 201 open",
  ],
  [
    "Expect: 100-continue and a body over the limit",
    post(length(64 * kibi + 1), "Expect: 100-continue"),
    "100 413 waiting",
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
const unframed = head("POST /nothing HTTP/1.1", host, length(longestBytes));

export const sizeCases: readonly HostileCase[] = [
  ["chunks of 64 KiB", chunks(chunk(fern.padEnd(bodyBytesMax)), lastChunk), "201 open"],
  ["a body of 64 KiB and 1 byte", create(fern.padEnd(bodyBytesMax + 1)), "413 open"],
  ["a length over the limit, before any body", post(length(bodyBytesMax + 1)), "413 waiting"],
  ...expecting("413 closed", {
    "a length over every limit, and a request for a body":
      post(length(longestBytes + 1)) + smuggled,
    "chunks over the limit that never end": [
      post(chunked),
      pause,
      ...Array(5).fill(chunk(" ".repeat(0x4000))),
    ],
    "chunks over the limit, and a request behind them": [
      chunks(chunk(fern.padEnd(bodyBytesMax + 1))),
      pause,
      lastChunk + smuggled,
    ],
  }),
  ["a body of 1 MiB for a GET", get(length(longestBytes)) + " ".repeat(longestBytes), "400 open"],
  ["a body of 1 MiB for no path", unframed + " ".repeat(longestBytes), "404 open"],
];

function hiding(request: string, ...headers: readonly string[]): string {
  return head(`${request} HTTP/1.1`, host, ...headers, length(smuggled.length)) + smuggled;
}

export const connectionCases: readonly HostileCase[] = [
  ["ten lists at once", get().repeat(10), `${"200 ".repeat(10)}open`],
  ["a refused request between two lists", get() + target("/nothing") + get(), "200 404 200 open"],
  ["a malformed request between two lists", `${get()}GET\r\n\r\n${smuggled}`, "200 refused closed"],
  ["a bad length between two lists", get() + post(length(-1)) + smuggled, "200 refused closed"],
  ["a closing request first", get() + get("Connection: close") + smuggled, "200 200 closed"],
  ["a create behind a list", get() + create(fern), "200 201 open"],
  ["a refused create before a list", create("{}") + get(), "400 200 open"],
  ...expecting("closed", {
    "a list behind a create that waits for the disk": create(fern) + get(),
    "two creates at once": create(fern) + create(fern),
    "a body that comes with the next request": [post(length(15)), pause, fern + get()],
    "nothing, and the client closes its side": [halfClose],
    "half a body, and the client closes its side": [post(length(15)), fern.slice(0, 5), halfClose],
    "chunks without a last one, and the client closes its side": [chunks(chunk(fern)), halfClose],
    "a list, and the client leaves": [get(), leave],
    "a create, and the client leaves": [create(fern), leave],
    "half a body, and the client leaves": [post(length(15)), "{", pause, leave],
    "half a chunk, and the client leaves": [post(chunked), "f\r\n{", pause, leave],
  }),
  ["one after another", [get(), answered, create(fern), answered, get()], "200 201 200 open"],
  ["a request in two packets, cut in the method", ["GE", pause, get().slice(2)], "200 open"],
  ["a request in two packets, cut in the line end", [get().slice(0, -1), pause, "\n"], "200 open"],
  [
    "a body of a wrong type that looks like a request",
    hiding("POST /plants", authorization),
    "415 open",
  ],
  ["a body without a token that looks like a request", hiding("POST /plants", json), "401 open"],
  ["a body for no path that looks like a request", hiding("POST /nothing"), "404 open"],
  ["a list, and the client closes its side", [get(), halfClose], "200 closed"],
  ["a body that lacks one byte", post(length(16)) + fern, "waiting"],
  ["a body that has one byte too many", post(length(14)) + fern, "400 refused closed"],
];
