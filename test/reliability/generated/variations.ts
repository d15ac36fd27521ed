/** Random variations of a request of the contract: some change nothing, others anything. */
import fc, { type Arbitrary } from "fast-check";
import type { SentHeaders } from "../../../src/check/service.ts";

export interface Outgoing {
  readonly method: string;
  readonly target: string;
  readonly headers: SentHeaders;
  readonly body?: Buffer | undefined;
}

export interface Variation {
  /** It changes nothing that the service may respond to. */
  readonly isHarmless: boolean;
  readonly apply: (sent: Outgoing) => Outgoing;
}

const oddTexts = [
  ...["", "0", "-1", "1e3", "9223372036854775808", "null", "id,name", "*", '"x"', 'W/"x"', "\0"],
  ...["\ufeff", "\u2028", "é", "🌱", "%00", "../", "'; DROP TABLE plants; --", "x".repeat(300)],
  ...["application/jsonl", "text/plain", "application/json;charset=latin1", "gzip"],
];
const oddJson = [
  ...["1e400", "-0", "1.0", "9007199254740993", "9223372036854775807", "9223372036854775808"],
  ...['"\\ud800"', '"\\u0000"', `"${"🌱".repeat(200)}"`, `"${"x".repeat(201)}"`, "[[[[]]]]", "{}"],
];
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];
const parameters = ["limit", "after", "fields", "LIMIT", "limit[]", "__proto__", ""];
const headerNames = [
  ...["Idempotency-Key", "If-Match", "If-None-Match", "Content-Type", "Content-Encoding"],
  ...["Accept", "Origin", "X-Request-Id", "Authorization"],
];
const harmlessHeaders = {
  "X-Any": "é ~!",
  cookie: "token=x",
  "X-HTTP-Method-Override": "DELETE",
  "X-Forwarded-For": "127.0.0.1",
  "X-Original-URL": "/metrics",
  Range: "bytes=0-0",
};

const text = fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: "binary", maxLength: 12 }));

const changes: Arbitrary<Variation["apply"]> = fc.oneof(
  fc.constantFrom(...methods).map((method) => (sent: Outgoing) => ({ ...sent, method })),
  fc.tuple(fc.constantFrom(...parameters), text).map(([name, value]) => (sent: Outgoing) => {
    const separator = sent.target.includes("?") ? "&" : "?";
    return { ...sent, target: `${sent.target}${separator}${name}=${encode(value)}` };
  }),
  fc.tuple(fc.double({ min: 0, max: 0.999, noNaN: true }), text).map(([at, added]) => {
    return (sent: Outgoing) => {
      const place = 1 + Math.floor(at * (sent.target.length - 1));
      const target = sent.target.slice(0, place) + encode(added) + sent.target.slice(place + 1);
      return { ...sent, target };
    };
  }),
  fc.tuple(fc.constantFrom(...headerNames), text).map(([name, value]) => (sent: Outgoing) => {
    // A header is one line of single bytes.
    const line = value.replace(/[^ -~\xa0-\xff]/g, "?");
    return { ...sent, headers: { ...sent.headers, [name]: line } };
  }),
  fc.tuple(fc.double({ min: 0, max: 0.999, noNaN: true }), text).map(([at, added]) => {
    return (sent: Outgoing) => {
      const { body = Buffer.alloc(0) } = sent;
      const place = Math.floor(at * body.length);
      const parts = [body.subarray(0, place), Buffer.from(added), body.subarray(place + 1)];
      return withBody(sent, Buffer.concat(parts));
    };
  }),
  fc
    .tuple(
      fc.constantFrom("name", "tag", "id", "__proto__", "other"),
      fc.oneof(fc.constantFrom(...oddJson), fc.json({ maxDepth: 2 })),
    )
    .map(([field, json]) => (sent: Outgoing) => {
      const [line = "", ...others] = String(sent.body ?? "").split("\n");
      const changed = line.replace(/\}$/, `,"${field}":${json}}`).replace("{,", "{");
      return withBody(sent, Buffer.from([changed, ...others].join("\n")));
    }),
);

export const variations: Arbitrary<Variation> = fc.oneof(
  changes.map((apply) => ({ isHarmless: false, apply })),
  fc
    .tuple(fc.boolean(), fc.subarray(Object.entries(harmlessHeaders)))
    .map(([isChunked, headers]) => ({
      isHarmless: true,
      apply: (sent: Outgoing) => {
        const more = { ...sent, headers: { ...Object.fromEntries(headers), ...sent.headers } };
        return isChunked && sent.body?.length && isFramed(sent) ? toChunks(more) : more;
      },
    })),
);

function isFramed({ headers, body }: Outgoing): boolean {
  return body !== undefined && headers["Content-Length"] === String(body.length);
}

function toChunks(sent: Outgoing): Outgoing {
  const { headers, body = Buffer.alloc(0) } = sent;
  const chunks = [`${body.length.toString(16)}\r\n`, body, "\r\n0\r\n\r\n"];
  return {
    ...sent,
    headers: { ...headers, "Content-Length": [], "Transfer-Encoding": "chunked" },
    body: Buffer.concat(chunks.map((chunk) => Buffer.from(chunk))),
  };
}

/** A length that was right stays right. */
function withBody(sent: Outgoing, body: Buffer): Outgoing {
  if (!isFramed(sent)) return sent;
  return { ...sent, body, headers: { ...sent.headers, "Content-Length": String(body.length) } };
}

function encode(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}
