/** Random changes of a request of the contract: of its method, target, headers or body. */
import fc, { type Arbitrary } from "fast-check";
import type { SentHeaders } from "../../src/check/service.ts";

export interface Outgoing {
  readonly method: string;
  readonly target: string;
  readonly headers: SentHeaders;
  readonly body?: Buffer | undefined;
}

export type Variation = (sent: Outgoing) => Outgoing;

const oddTexts = [
  "",
  "0",
  "-1",
  "1e3",
  "9223372036854775808",
  "null",
  "id",
  "id,name",
  "*",
  '"x"',
  'W/"x"',
  "\0",
  "\ufeff",
  "\u2028",
  "é",
  "🌱",
  "%00",
  "../",
  "'; DROP TABLE plants; --",
  "x".repeat(300),
  "application/jsonl",
  "text/plain",
  "application/json;charset=latin1",
  "gzip",
  "DELETE",
];
const oddJson = [
  "1e400",
  "-0",
  "1.0",
  "9007199254740993",
  "9223372036854775807",
  "9223372036854775808",
  '"\\ud800"',
  '"\\u0000"',
  `"${"🌱".repeat(200)}"`,
  `"${"x".repeat(201)}"`,
  "[[[[]]]]",
  "{}",
];
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];
const parameters = ["limit", "after", "include", "fields", "LIMIT", "limit[]", "__proto__", ""];
const headerNames = [
  "Idempotency-Key",
  "If-Match",
  "If-None-Match",
  "Content-Type",
  "Content-Encoding",
  "Accept",
  "Origin",
  "X-Request-Id",
  "Authorization",
  "Range",
  "Cookie",
  "X-HTTP-Method-Override",
  "X-Forwarded-For",
  "X-Original-URL",
];

const text = fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: "binary", maxLength: 12 }));
const json = fc.oneof(fc.constantFrom(...oddJson), fc.json({ maxDepth: 2 }));
const place = fc.double({ min: 0, max: 0.999, noNaN: true });

export const variations: Arbitrary<Variation> = fc.oneof(
  fc.constantFrom(...methods).map((method) => (sent: Outgoing) => ({ ...sent, method })),
  fc.tuple(fc.constantFrom(...parameters), text).map(([name, value]) => (sent: Outgoing) => {
    const separator = sent.target.includes("?") ? "&" : "?";
    return { ...sent, target: `${sent.target}${separator}${name}=${encode(value)}` };
  }),
  fc.tuple(place, text).map(([at, added]) => (sent: Outgoing) => {
    const { target } = sent;
    const index = 1 + Math.floor(at * (target.length - 1));
    return { ...sent, target: target.slice(0, index) + encode(added) + target.slice(index + 1) };
  }),
  fc.tuple(fc.constantFrom(...headerNames), text).map(([name, value]) => (sent: Outgoing) => {
    // A header is one line of single bytes.
    const line = value.replace(/[^ -~\xa0-\xff]/g, "?");
    return { ...sent, headers: { ...sent.headers, [name]: line } };
  }),
  fc.tuple(place, text).map(([at, added]) => (sent: Outgoing) => {
    const { body = Buffer.alloc(0) } = sent;
    const index = Math.floor(at * body.length);
    const parts = [body.subarray(0, index), Buffer.from(added), body.subarray(index + 1)];
    return withBody(sent, Buffer.concat(parts));
  }),
  fc
    .tuple(fc.constantFrom("name", "tag", "id", "__proto__", "other"), json)
    .map(([field, value]) => (sent: Outgoing) => {
      // Of the last plant, if there are many.
      const changed = String(sent.body ?? "").replace(
        /\}(\]?)$/,
        (_, end) => `,"${field}":${value}}${end}`,
      );
      return withBody(sent, Buffer.from(changed.replace("{,", "{")));
    }),
);

/** A length that was right stays right. Where there is none, nothing is changed. */
function withBody(sent: Outgoing, body: Buffer): Outgoing {
  if (sent.headers["Content-Length"] !== String(sent.body?.length)) return sent;
  return { ...sent, body, headers: { ...sent.headers, "Content-Length": String(body.length) } };
}

function encode(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}
