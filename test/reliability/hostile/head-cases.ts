/** Heads that no good client sends: lines, methods, versions, targets and headers. */
import {
  answered,
  authorization,
  create,
  expecting,
  fern,
  get,
  type HostileCase,
  head,
  host,
  json,
  post,
  smuggled,
  tokenPlaceholder,
  victimId,
} from "./hostile-case.ts";

const requestLine = "GET /plants?limit=0 HTTP/1.1";

export const lineCases: readonly HostileCase[] = [
  ...expecting("200 open", {
    "a good request": get(),
    "a header without a value": get("X-Empty:"),
    "a name of all marks that are allowed": get("!#$%&'*+-.^_`|~09azAZ: a"),
    "a value with a delete character": get("X: a\x7fb"),
    "a value with a tab": get("X: a\tb"),
    "a value outside ASCII": get("X: \xff\xfe"),
    "a value that is cut by an encoded line end": get("X: a%0d%0aSet-Cookie: b"),
    "a value with a line separator of Unicode": get("X: a\xe2\x80\xa8b"),
  }),
  ...expecting("waiting", {
    "no headers, and nothing more": "GET /healthz HTTP/1.1\r\n",
    "half a request line": "GET /pla",
  }),
  ...expecting("400 closed", {
    "nothing but line ends": "\r\n\r\n\r\n",
    "one empty line before the request": `\r\n${get()}`,
    "many empty lines before the request": `${"\r\n".repeat(10)}${get()}`,
    "a bare line feed before the request": `\n${get()}`,
    "a space before the request": ` ${get()}`,
    "a zero byte before the request": `\0${get()}`,
    "a byte order mark before the request": `\xef\xbb\xbf${get()}`,
    "a bare line feed behind a header": get("A: b\nC: d"),
    "a bare carriage return in a header": get("A: b\rC: d"),
    "a head that ends with bare line feeds": `${requestLine}\r\n${host}\r\n${authorization}\n\n`,
    "two carriage returns before a line feed": get("A: b\r"),
    "two spaces in the request line": get().replace(" ", "  "),
    "a request line of one word": head("GET", host),
    "a header without a colon": get("no colon"),
    "a header without a name": get(": value"),
    "a space before a colon": get("X-Spaced : a"),
    "a space before a name": get(" X-Spaced: a"),
    "a header folded with a space": get("X-Folded: a", " b"),
    "a header folded with a tab": get("X-Folded: a", "\tb"),
    "a folded header first": head(requestLine, ` ${host}`, host, authorization),
    "a name with a space inside": get("X Y: a"),
    "a name in brackets": get("(X): a"),
    "a name with a zero byte": get("X\0Y: a"),
    "a name outside ASCII": get("X-\xe9: a"),
    "a value with a zero byte": get("X: a\0b"),
    "a value with a control character": get("X: a\x01b"),
    "an id of the request with a line end in it": get("X-Request-Id: a\r\n b"),
    "a TLS handshake": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a proxy's greeting (PROXY v1)": `PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n${get()}`,
    "random bytes": "\x9c\xd2\x00\xff\x13\x37\r\n\r\n",
    SSH: "SSH-2.0-OpenSSH_9.6\r\n",
  }),
  ...expecting("505 closed", {
    "bare line feeds throughout": get().replaceAll("\r\n", "\n"),
    "bare carriage returns throughout": get().replaceAll("\r\n", "\r"),
    "a bare line feed behind the request line": get().replace("\r\n", "\n"),
    "a tab in the request line": get().replace(" ", "\t"),
    "a space behind the version": get().replace("/1.1", "/1.1 "),
    "a request line of two words": head("GET /healthz", host),
    "a request line of four words": head("GET /healthz HTTP/1.1 now", host),
  }),
];

function method(name: string, target = "/plants"): string {
  return head(`${name} ${target} HTTP/1.1`, host, authorization);
}

function target(text: string): string {
  return method("GET", Buffer.from(text).toString("latin1"));
}

function version(text: string, ...headers: readonly string[]): string {
  return head(`GET /plants?limit=0 ${text}`, host, authorization, ...headers);
}

const methodCases: readonly HostileCase[] = [
  ...expecting("405 open", {
    "the method DELETE on the list": method("DELETE"),
    "the method TRACE": method("TRACE"),
  }),
  ["the method CONNECT on a path", method("CONNECT"), "405 closed"],
  ["the method CONNECT on an authority", method("CONNECT", "plants.example:443"), "404 closed"],
  ["the method HEAD on a path that is not there", method("HEAD", "/nothing"), "404 open"],
  ...expecting("closed", {
    "a method in lower case": method("get"),
    "a method in mixed case": method("Get"),
    "an unknown method": method("BREW"),
    "the method PRI": method("PRI"),
    "a method of 1 KiB": method("X".repeat(1024)),
  }),
  ...expecting("400 closed", {
    "a method with a mark": method("GET!"),
    "a method with a colon": method("GET:"),
    "an empty method": head(" /plants HTTP/1.1", host, authorization),
  }),
  // The runtime's parser takes another way on each processor.
  ["a method outside ASCII", method("G\xcbT"), "refused closed"],
  ["a method with a zero byte", method("GE\0T"), "505 closed"],
  ["a method of 20 KiB", method("X".repeat(20 * 1024)), "431 closed"],
  ["a header that overrides the method", get("X-HTTP-Method-Override: DELETE"), "200 open"],
];

const versionCases: readonly HostileCase[] = [
  ...expecting("505 closed", {
    "HTTP/0.9, as it was": "GET /healthz\r\n",
    "HTTP/0.9, by name": version("HTTP/0.9"),
    "HTTP/1.2": version("HTTP/1.2"),
    "HTTP/1.10": version("HTTP/1.10"),
    "HTTP/1": version("HTTP/1"),
    "HTTP/01.1": version("HTTP/01.1"),
    "HTTP/2.0": version("HTTP/2.0"),
    "HTTP/3": version("HTTP/3"),
    "HTTP/9.9": version("HTTP/9.9"),
    "a version in lower case": version("http/1.1"),
    "a version with a comma": version("HTTP/1,1"),
    "a version with a sign": version("HTTP/+1.1"),
    "a version of another protocol": version("ICAP/1.0"),
    "HTTPS as a version": version("HTTPS/1.1"),
  }),
  ...expecting("200 closed", {
    "HTTP/1.0": version("HTTP/1.0"),
    "HTTP/1.0 that keeps the connection": version("HTTP/1.0", "Connection: keep-alive"),
    "HTTP/1.0 without a host": head("GET /healthz HTTP/1.0"),
    "HTTP/1.0 with a header of many connections": version(
      "HTTP/1.0",
      "Connection: close, keep-alive",
    ),
  }),
  ...expecting("400 closed", {
    "HTTP/1.0 without a host where a token is needed": head("GET /plants HTTP/1.0"),
    "the greeting of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  }),
];

const targetCases: readonly HostileCase[] = [
  ...expecting("200 open", {
    "the absolute form": target("http://plants.example/plants?limit=0"),
    "the absolute form of another host": target("http://other.example/plants?limit=0"),
    "the absolute form with a user": target("http://user:secret@plants.example/plants?limit=0"),
    "the absolute form without a path": target("http://plants.example"),
    "the absolute form of HTTPS": target("https://plants.example/plants?limit=0"),
    "the absolute form in capitals": target("HTTP://plants.example/plants?limit=0"),
    "dots that lead to a path": target("/healthz/../plants?limit=0"),
    "encoded dots": target("/healthz/%2e%2e/plants?limit=0"),
    "backslashes that lead up": target("/healthz\\..\\plants?limit=0"),
    "an encoded name of a parameter": target("/plants?%6cimit=0"),
  }),
  ...expecting("400 open", {
    "the absolute form with a query only": target("http://plants.example?limit=0"),
    "an encoded id": method("DELETE", `/plants/%3${victimId}`),
    "an id with a zero byte": method("DELETE", `/plants/${victimId}%00`),
    "an id with a parameter": method("DELETE", `/plants/${victimId};a=b`),
    "an id with spaces": method("DELETE", `/plants/${victimId}%20`),
    "a fragment": target("/plants?limit=0#top"),
    "bytes that are no UTF-8, encoded": target("/plants?limit=%ff%fe"),
    "UTF-8 of too many bytes, encoded": target("/plants?limit=%c0%b0"),
    "parameters set apart by a semicolon": target("/plants?limit=0;after=1"),
    "an encoded line end": target("/plants?limit=0%0d%0aX:%20y"),
  }),
  ...expecting("400 closed", {
    "the form of a file": target("file:///etc/passwd"),
    "the form of a script": target("javascript:alert(1)"),
    "the authority form": target("plants.example:80"),
    "an asterisk": target("*"),
    "an asterisk for OPTIONS": method("OPTIONS", "*"),
    "a backslash": target("\\plants?limit=0"),
    "no target": head("GET  HTTP/1.1", host, authorization),
    "a query alone": target("?limit=0"),
    "a path without a slash": target("plants?limit=0"),
  }),
  ...expecting("404 open", {
    "two slashes": target("//plants"),
    "two slashes and a host": target("//other.example/plants?limit=0"),
    "an encoded slash": target("/%2fplants"),
    "a slash in an id": method("DELETE", `/plants/${victimId}/`),
    "an encoded zero byte": target("/plants%00"),
    "dots that lead up": target("/../../etc/passwd"),
    "twice encoded dots": target("/healthz/%252e%252e/plants?limit=0"),
    "dots in the files of the pages": target("/assets/../../../package.json"),
    "encoded dots in the files of the pages": target("/assets/..%2f..%2fpackage.json"),
    "a fragment and a query behind it": target("/plants#?limit=0"),
    "bytes that are no UTF-8": method("GET", "/plants\xff\xfe"),
    "a delete character": target("/plants\x7f"),
  }),
  ...expecting("505 closed", {
    "a zero byte": target("/plants\0"),
    "a control character": target("/plants\x01"),
  }),
];

export const requestLineCases = [...methodCases, ...versionCases, ...targetCases];

function withHost(...lines: readonly string[]): string {
  return head(requestLine, ...lines, authorization);
}

function withToken(...lines: readonly string[]): string {
  return head(requestLine, host, ...lines);
}

const hostCases: readonly HostileCase[] = [
  ["no host", withHost(), "400 closed"],
  ...expecting("400 open", {
    "an empty host": withHost("Host:"),
    "a host and an empty one": withHost("Host: a", "Host:"),
  }),
  ...expecting("200 open", {
    "a host with a port": withHost("Host: a:8080"),
    "a host of IPv6": withHost("Host: [::1]:80"),
    "a host of 1 KiB": withHost(`Host: ${"a".repeat(1024)}`),
    "a host for a proxy to believe": get("X-Forwarded-Host: evil.example", "Forwarded: host=evil"),
  }),
];

const tokenCases: readonly HostileCase[] = [
  ...expecting("401 open", {
    "a tab behind the scheme": withToken(`Authorization: Bearer\t${tokenPlaceholder}`),
    "a token outside ASCII": withToken("Authorization: Bearer \xff\xfe"),
    "a token of 10 KiB": withToken(`Authorization: Bearer ${"x".repeat(10_240)}`),
    "a token of 10 KiB that begins well": withToken(`${authorization}${"x".repeat(10_240)}`),
    "a token in a cookie": withToken(`Cookie: token=${tokenPlaceholder}`),
    "a token in Proxy-Authorization": withToken(`Proxy-${authorization}`),
  }),
  ["a token with a space behind it", withToken(`${authorization} `), "200 open"],
  ...expecting("400 closed", {
    "a token folded onto a second line": withToken(`Authorization: Bearer\r\n ${tokenPlaceholder}`),
  }),
];

const expectCases: readonly HostileCase[] = [
  ...expecting("100 201 open", {
    "Expect: 100-continue, and the body at once": create(fern, "Expect: 100-continue"),
    "Expect: 100-continue, and the body when it is asked for": [
      post("Content-Length: 15", "Expect: 100-continue"),
      answered,
      fern,
    ],
    "two expectations": create(fern, "Expect: 100-continue", "Expect: x"),
  }),
  ["Expect: 100-continue without a body", get("Expect: 100-continue"), "100 200 open"],
  ...expecting("100 413 waiting", {
    "Expect: 100-continue and a body over the limit": post(
      "Content-Length: 65537",
      "Expect: 100-continue",
    ),
  }),
  ...expecting("100 401 waiting", {
    "Expect: 100-continue without a token": head(
      "POST /plants HTTP/1.1",
      host,
      json,
      "Content-Length: 15",
      "Expect: 100-continue",
    ),
  }),
  ["an expectation that is unknown", create(fern, "Expect: 200-ok"), "201 open"],
];

const closingCases: readonly HostileCase[] = [
  ...expecting("200 closed", {
    "Connection: close": get("Connection: close"),
    "Connection: close, and a request behind it": get("Connection: close") + smuggled,
    "Connection: close among others": get("Connection: x, close"),
    "Connection: close and keep-alive": get("Connection: close", "Connection: keep-alive"),
  }),
  ...expecting("200 open", {
    "Connection names the token's header": get("Connection: Authorization"),
    "an upgrade to HTTP/2": get(
      "Connection: Upgrade, HTTP2-Settings",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABkAAQAAP__",
    ),
    "an upgrade to a WebSocket": get(
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ),
  }),
  ["Connection names the length", create(fern, "Connection: Content-Length"), "201 open"],
  ...expecting("200 400 closed", {
    "an upgrade, and bytes of the new protocol": [
      get("Connection: Upgrade", "Upgrade: x"),
      answered,
      "\x00\x01\x02\r\n\r\n",
    ],
  }),
];

export const headerCases = [...hostCases, ...tokenCases, ...expectCases, ...closingCases];
