/** Headers that decide where a request goes, who sends it and what becomes of the connection. */
import {
  answered,
  authorization,
  create,
  fern,
  get,
  type HostileCase,
  head,
  host,
  json,
  post,
  smuggled,
  tokenPlaceholder,
} from "./hostile-case.ts";

const line = "GET /plants?limit=0 HTTP/1.1";

function withHost(...lines: readonly string[]): string {
  return head(line, ...lines, authorization);
}

function withToken(...lines: readonly string[]): string {
  return head(line, host, ...lines);
}

const hostCases: readonly HostileCase[] = [
  ["no host", withHost(), "400 closed"],
  ["an empty host", withHost("Host:"), "400 open"],
  ["a host and an empty one", withHost("Host: a", "Host:"), "400 open"],
  ["a host with a port", withHost("Host: a:8080"), "200 open"],
  ["a host of IPv6", withHost("Host: [::1]:80"), "200 open"],
  ["a host of 1 KiB", withHost(`Host: ${"a".repeat(1024)}`), "200 open"],
  [
    "a host for a proxy to believe",
    get("X-Forwarded-Host: evil.example", "Forwarded: host=evil"),
    "200 open",
  ],
];

const tokenCases: readonly HostileCase[] = [
  ["a tab behind the scheme", withToken(`Authorization: Bearer\t${tokenPlaceholder}`), "401 open"],
  ["a token with a space behind it", withToken(`${authorization} `), "200 open"],
  ["a token outside ASCII", withToken("Authorization: Bearer \xff\xfe"), "401 open"],
  ["a token of 10 KiB", withToken(`Authorization: Bearer ${"x".repeat(10_240)}`), "401 open"],
  [
    "a token of 10 KiB that begins well",
    withToken(`${authorization}${"x".repeat(10_240)}`),
    "401 open",
  ],
  ["a token in a cookie", withToken(`Cookie: token=${tokenPlaceholder}`), "401 open"],
  ["a token in Proxy-Authorization", withToken(`Proxy-${authorization}`), "401 open"],
  [
    "a token folded onto a second line",
    withToken(`Authorization: Bearer\r\n ${tokenPlaceholder}`),
    "400 closed",
  ],
];

const expectCases: readonly HostileCase[] = [
  [
    "Expect: 100-continue, and the body at once",
    create(fern, "Expect: 100-continue"),
    "100 201 open",
  ],
  [
    "Expect: 100-continue, and the body when it is asked for",
    [post("Content-Length: 15", "Expect: 100-continue"), answered, fern],
    "100 201 open",
  ],
  ["Expect: 100-continue without a body", get("Expect: 100-continue"), "100 200 open"],
  [
    "Expect: 100-continue and a body over the limit",
    post("Content-Length: 65537", "Expect: 100-continue"),
    "100 413 closed",
  ],
  [
    "Expect: 100-continue without a token",
    head("POST /plants HTTP/1.1", host, json, "Content-Length: 15", "Expect: 100-continue"),
    "100 401 waiting",
  ],
  ["an expectation that is unknown", create(fern, "Expect: 200-ok"), "201 open"],
  ["two expectations", create(fern, "Expect: 100-continue", "Expect: x"), "100 201 open"],
];

const connectionCases: readonly HostileCase[] = [
  ["Connection: close", get("Connection: close"), "200 closed"],
  ["Connection: close, and a request behind it", get("Connection: close") + smuggled, "200 closed"],
  ["Connection: close among others", get("Connection: x, close"), "200 closed"],
  [
    "Connection: close and keep-alive",
    get("Connection: close", "Connection: keep-alive"),
    "200 closed",
  ],
  ["Connection names the token's header", get("Connection: Authorization"), "200 open"],
  ["Connection names the length", create(fern, "Connection: Content-Length"), "201 open"],
  [
    "an upgrade to HTTP/2",
    get("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    "200 open",
  ],
  [
    "an upgrade to a WebSocket",
    get(
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ),
    "200 open",
  ],
  [
    "an upgrade, and bytes of the new protocol",
    [get("Connection: Upgrade", "Upgrade: x"), answered, "\x00\x01\x02\r\n\r\n"],
    "200 400 closed",
  ],
];

export const headerCases = [...hostCases, ...tokenCases, ...expectCases, ...connectionCases];
