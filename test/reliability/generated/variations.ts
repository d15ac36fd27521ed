/** Random variations of a request of the contract: some change nothing, others anything. */
import fc, { type Arbitrary } from "fast-check";
import type { SentHeaders } from "../../../src/check/service.ts";

export interface Outgoing {
  readonly method: string;
  readonly target: string;
  readonly headers: SentHeaders;
  readonly body?: Buffer | undefined;
}

export type Variation =
  | { readonly kind: "harmless"; readonly isChunked: boolean; readonly headers: Headers }
  | { readonly kind: "changes"; readonly changes: readonly Change[] };

type Headers = Readonly<Record<string, string>>;

interface Change {
  readonly part: "method" | "target" | "query" | "header" | "token" | "body" | "field";
  /** Where in the text, from 0 to 1. */
  readonly at: number;
  readonly deleted: number;
  readonly text: string;
  readonly method: string;
  readonly parameter: string;
  readonly header: string;
  readonly field: string;
  readonly json: string;
}

const oddTexts = [
  ...[
    "",
    " ",
    "0",
    "-1",
    "1e3",
    "9223372036854775808",
    "NaN",
    "null",
    "id,name",
    "*",
    '"x"',
    'W/"x"',
  ],
  ...[
    "\0",
    "\ufeff",
    "\u2028",
    "é",
    "🌱",
    "%00",
    "../",
    "'; DROP TABLE plants; --",
    "x".repeat(300),
  ],
  ...["application/jsonl", "text/plain", "application/json;charset=latin1", "gzip", "identity"],
];
const oddJson = [
  ...["1e400", "-0", "1.0", "9007199254740993", "9223372036854775807", "9223372036854775808"],
  ...['"\\ud800"', '"\\u0000"', `"${"🌱".repeat(200)}"`, `"${"x".repeat(201)}"`, "[[[[]]]]", "{}"],
];

const harmless: Arbitrary<Variation> = fc.record({
  kind: fc.constant("harmless"),
  isChunked: fc.boolean(),
  headers: fc
    .subarray([
      ["X-Any", "é ~!"],
      ["cookie", "token=x"],
      ["ACCEPT-LANGUAGE", "eo"],
      ["X-HTTP-Method-Override", "DELETE"],
      ["X-Forwarded-For", "127.0.0.1"],
      ["X-Original-URL", "/metrics"],
      ["Range", "bytes=0-0"],
      ["Prefer", "respond-async"],
    ])
    .map((pairs) => Object.fromEntries(pairs)),
});

const change: Arbitrary<Change> = fc.record({
  part: fc.constantFrom("method", "target", "query", "header", "token", "body", "field", "field"),
  at: fc.double({ min: 0, max: 0.999, noNaN: true }),
  deleted: fc.nat(3),
  text: fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: "binary", maxLength: 12 })),
  method: fc.constantFrom("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"),
  parameter: fc.constantFrom("limit", "after", "fields", "LIMIT", "limit[]", "__proto__", "x", ""),
  header: fc.constantFrom(
    ...["Idempotency-Key", "If-Match", "If-None-Match", "Content-Type", "Content-Encoding"],
    ...["Accept", "Origin", "X-Request-Id", "Access-Control-Request-Method"],
  ),
  field: fc.constantFrom("name", "tag", "id", "__proto__", "other"),
  json: fc.oneof(fc.constantFrom(...oddJson), fc.json({ maxDepth: 2 })),
});

export const variations: Arbitrary<Variation> = fc.oneof(
  harmless,
  fc.record({
    kind: fc.constant("changes"),
    changes: fc.array(change, { minLength: 1, maxLength: 2, size: "max" }),
  }),
);

export function vary(sent: Outgoing, variation: Variation): Outgoing {
  if (variation.kind === "changes") return variation.changes.reduce(apply, sent);
  const { headers, body } = sent;
  const more = { ...variation.headers, ...headers };
  const isFramed = body && headers["Content-Length"] === String(body.length);
  if (!isFramed || !variation.isChunked || body.length === 0) return { ...sent, headers: more };
  const chunks = [`${body.length.toString(16)}\r\n`, body, "\r\n0\r\n\r\n"];
  return {
    ...sent,
    headers: { ...more, "Content-Length": [], "Transfer-Encoding": "chunked" },
    body: Buffer.concat(chunks.map((chunk) => Buffer.from(chunk))),
  };
}

function apply(sent: Outgoing, change: Change): Outgoing {
  const { method, target, headers, body = Buffer.alloc(0) } = sent;
  switch (change.part) {
    case "method":
      return { ...sent, method: change.method };
    case "target": {
      const at = 1 + Math.floor(change.at * (target.length - 1));
      const rest = target.slice(at + change.deleted);
      return { ...sent, target: target.slice(0, at) + encode(change.text) + rest };
    }
    case "query": {
      const query = `${change.parameter}=${encode(change.text)}`;
      return { ...sent, target: `${target}${target.includes("?") ? "&" : "?"}${query}` };
    }
    case "header":
      return { ...sent, headers: { ...headers, [change.header]: inHeader(change.text) } };
    case "token":
      return { ...sent, headers: { ...headers, Authorization: `Bearer ${inHeader(change.text)}` } };
    case "body": {
      const at = Math.floor(change.at * body.length);
      const rest = body.subarray(at + change.deleted);
      return withBody(sent, Buffer.concat([body.subarray(0, at), Buffer.from(change.text), rest]));
    }
    case "field": {
      if (method !== "POST" && method !== "PUT") return sent;
      const [line = "", ...others] = body.toString().split("\n");
      const fields = { ...readFields(line), [`${JSON.stringify(change.field)}`]: change.json };
      const text = Object.entries(fields).map(([name, value]) => `${name}:${value}`);
      return withBody(sent, Buffer.from([`{${text}}`, ...others].join("\n")));
    }
  }
}

/** Names and values as JSON texts. */
function readFields(line: string): Record<string, string> {
  try {
    const pairs = Object.entries(JSON.parse(line)).map((pair) =>
      pair.map((each) => JSON.stringify(each)),
    );
    return Object.fromEntries(pairs);
  } catch {
    return {};
  }
}

/** A length that was right stays right. */
function withBody(sent: Outgoing, body: Buffer): Outgoing {
  const { headers, body: before } = sent;
  const isFramed = before && headers["Content-Length"] === String(before.length);
  if (!isFramed) return sent;
  return { ...sent, body, headers: { ...headers, "Content-Length": String(body.length) } };
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** A header is one line of single bytes. */
function inHeader(text: string): string {
  return text.replace(/[^ -~\xa0-\xff]/g, "?");
}
