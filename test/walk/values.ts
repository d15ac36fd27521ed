/** What the requests of a walk are made of: mostly right, sometimes wrong. */

/** Who the tokens of a walk belong to: the arguments of `token create`. */
export const grants = {
  writer: ["alice", "--garden", "rose"],
  reader: ["bob", "--garden", "rose", "--scope", "read"],
  stranger: ["carol", "--expires", "30d"],
  keeper: ["dave", "--garden", "wood"],
  revoked: ["erin", "--garden", "rose"],
} as const;

const unknownToken = `plant_${"0".repeat(49)}`;
const longText = "x".repeat(8_000);
export const textCodePoints = { name: 200, tag: 100 } as const;
const longName = "n".repeat(textCodePoints.name);
const longTag = "\u{1f33f}".repeat(textCodePoints.tag);

// biome-ignore-start format: tables.
export const names = [
  "Fern",
  "Moss",
  "Ivy",
  "Ro\u0308se \u{1f339}",
  longName,
  " \t<b>",
  '100%&\\"',
];
export const tags = ["", "", "shade", "hall", "a&b", "\u00e9", longTag];
export const ids = ["1", "2", "3", "4", "5", "6", "7", "8", "-1", "0", "12"];
export const farIds = ["9007199254740993", "9223372036854775807", "-9223372036854775808"];
/** As JSON. */
export const otherNumbers = ["1.0", "1e1", "-0", "9007199254740993", "4503599627370497"];
export const wrongIds = [
  "x",
  "1.5",
  "007",
  "+1",
  "-0",
  "9223372036854775808",
  "%31",
  "%ff",
  "1%20",
];
export const keys = ["k1", "k2", "k3", '"k1"', '"a b"', "~".repeat(255), "~".repeat(240)];
export const wrongKeys = ["", "a b", '"open', '""', "\u00e9", "~".repeat(256)];
export const wrongEntityTags = ["x", '"x', '"a" "b"', "W/*", "", ",", "*, *"];
export const wrongFields = [
  '"name":null',
  '"name":7',
  '"name":""',
  '"name":" "',
  `"name":"${longName}n"`,
  '"name":"a\\u0000"',
  '"name":"\\ud83c"',
  '"name":"twice"',
  '"tag":null',
  '"tag":[]',
  `"tag":"${longTag}t"`,
  '"id":"1"',
  '"id":1.5',
  '"id":9223372036854775808',
  '"id":null',
  '"color":"green"',
  '"Name":"x"',
  '"__proto__":{}',
  '"a/b~c":1',
  '"\\u202evil":1',
];
export const wrongBodies = [
  "",
  "{",
  "[]",
  "{}",
  "null",
  "7",
  '"Fern"',
  '{"name":"Fern"}{}',
  '{"name":"Fern",}',
  "{'name':1}",
  '\ufeff{"name":"Fern"}',
  "[".repeat(3_000),
];
export const wrongBulks = [
  '{"ids":[]}',
  '{"ids":7}',
  '{"ids":[7],"set":{}}',
  '{"ids":[7],"ids":[8]}',
  '{"ids":[07]}',
  '{"ids":["1"],"set":{"tag":null},"more":1}',
  '[{"name":"a"},]',
  '[{"name":"a"},7]',
  `[${"{},".repeat(10_000)}{}]`,
  `{"ids":[${"1,".repeat(10_000)}1]}`,
];
export const types = [
  "application/json",
  "Application/JSON; charset=utf-8",
  "application/json;",
  'application/json;charset="UTF-8"',
];
export const wrongTypes = [
  "text/plain",
  "",
  "application/json; charset=latin1",
  "application/merge-patch+json",
];
export const searches = ["fern", "FERN", "mo", "r\u00f6se", "fern+x", "%", "_", "%F0%9F%8C%B9"];
export const wrongSearches = ["", "+", "%CC%81", "%00", "%ff", "a".repeat(101)];
export const wrongTags = ["%00", "%ff", "t".repeat(101)];
export const limits = ["0", "1", "2", "5", "20", "1000", "1001", "2147483647"];
export const wrongLimits = ["", "-1", "1.5", "ten", "007", "2147483648", "%ff"];
export const wrongParameters = [
  "color=green",
  "Limit=1",
  "=3",
  "include=name",
  "%zz=1",
  "__proto__=1",
];
export const paths = [
  "/plants",
  "/plants/1",
  "/plants/bulk",
  "/plants/bulk-update",
  "/plants/bulk-delete",
  "/tags",
  "/events",
  "/me",
];
export const wrongPaths = [
  "/nothing",
  "/plants/",
  "/plants/1/2",
  "/Plants",
  "/me/",
  "//me",
  "/plants%2F1",
  "/assets/x",
];
export const openPaths = [
  "/healthz",
  "/readyz",
  "/metrics",
  "/openapi.json",
  "/",
  "/docs",
  "/favicon.ico",
];
export const methods = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "TRACE",
  "PURGE",
];
export const wrongCredentials = [
  "Bearer {revoked}",
  "Bearer {revoked}",
  `Bearer ${unknownToken}`,
  "Bearer plant_short",
  "Bearer a.b.c",
  "Basic {writer}",
  "{writer}",
  "Bearer",
  "Bearer {writer}x",
  "x Bearer {writer}",
  "Bearer {writer}, Bearer {writer}",
  `Bearer ${longText}`,
];
export const wrongRequestIds = ["a b", "x".repeat(129), "", `plant_${"a".repeat(20)}`];
export const traces = [
  `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`,
  `00-${"0".repeat(32)}-${"cd".repeat(8)}-01`,
  "00-x",
];
export const origins = ["https://a.example", "https://b.example", "https://c.example", "null"];
export const wrongHosts = ["a/b", "user@host", "", "plants.test:80", "[::1]:8080", "a, b"];
// biome-ignore-end format: tables.

const common = "Host: a\r\nAuthorization: Bearer {writer}\r\n";
const json = "Content-Type: application/json\r\n";
const chunked = "Transfer-Encoding: chunked\r\n";
const fern = '{"name":"Fern"}';
const fernLength = `Content-Length: ${fern.length}\r\n`;
const fernChunks = `f\r\n${fern}\r\n0\r\n\r\n`;

/** Requests that no client library sends. Each gets a response, or the connection is closed. */
export function makeOddities(base: string): readonly string[] {
  const head = (line: string, ...headers: readonly string[]) =>
    `${line}\r\n${headers.join("")}\r\n`;
  const get = (target: string, ...headers: readonly string[]) =>
    head(`GET ${target} HTTP/1.1`, common, ...headers);
  const post = (...headers: readonly string[]) =>
    head(`POST ${base}/plants HTTP/1.1`, common, json, ...headers);
  return [
    get(`${base}/plants`, "Host: a\r\n"),
    head(`GET ${base}/plants HTTP/1.1`),
    head(`GET ${base}/plants HTTP/1.0`),
    head(`GET ${base}/healthz HTTP/1.0`),
    head(`GET ${base}/plants HTTP/2.0`, common),
    head(`get ${base}/plants HTTP/1.1`, common),
    head("CONNECT a:80 HTTP/1.1", common),
    get("*"),
    get(`http://a${base}/plants?limit=1`),
    get(`${base}/x/../me`),
    get(`${base}/./metrics`),
    get(`${base}/x\\..\\metrics`),
    get(`${base}/%2e/metrics`),
    get(`${base}/%6detrics`),
    get(`${base}//metrics`),
    get(`${base}/plants?limit=1#fragment`),
    get(`${base}/plants?limit=%zz`),
    get(`${base}/plants\u0001`),
    get(`${base}/pl ants`),
    get(`${base}/me`, `X: ${"x".repeat(15_000)}\r\n`),
    get(`${base}/me`, `X: ${"x".repeat(17_000)}\r\n`),
    get(`${base}/me`, "X : y\r\n"),
    get(`${base}/me`, "X:\r\n y\r\n"),
    get(`${base}/me`, "X\r\n"),
    `${get(`${base}/me`, "Content-Length: 2\r\n")}{}`,
    `${get(`${base}/plants/1`, chunked)}0\r\n\r\n`,
    `${head(`DELETE ${base}/plants/1 HTTP/1.1`, common, "Content-Length: 2\r\n")}{}`,
    post(),
    post("Content-Length: 0\r\n"),
    post("Content-Length: -1\r\n"),
    post("Content-Length: x\r\n"),
    `${post("Content-Length: +15\r\n")}${fern}`,
    `${post(fernLength, fernLength)}${fern}`,
    `${post("Content-Length: 2000000\r\n")}{`,
    `${post(fernLength, "Expect: 100-continue\r\n")}${fern}`,
    `${post("Transfer-Encoding: gzip, chunked\r\n")}0\r\n\r\n`,
    `${post("Transfer-Encoding: chunked,\r\n")}${fernChunks}`,
    `${post(chunked, fernLength)}${fernChunks}`,
    `${post(chunked)}f;ext=1\r\n${fern}\r\n0\r\nX: trailer\r\n\r\n`,
    `${post(chunked)}zz\r\n${fern}\r\n0\r\n\r\n`,
  ];
}
