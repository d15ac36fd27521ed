/** Requests with random changes: whatever comes back is documented, and none of it is a 5xx. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { onEachEngine } from "./garden.ts";

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly body: string | undefined;
  readonly headers: Record<string, string>;
}

const plain: readonly (readonly [request: string, body?: string])[] = [
  ["GET /plants?limit=2&after=1&tag=a&order=desc&include=id&q=fern"],
  ["POST /plants?include=id", '{"name":"Fern","tag":"a","id":7}'],
  ["POST /plants/bulk", '[{"name":"Fern"},{"name":"Ivy","id":8}]'],
  ["POST /plants/bulk-delete", '{"ids":[7,8]}'],
  ["GET /plants/7?include=id"],
  ["PUT /plants/7", '{"name":"Moss","tag":"b"}'],
  ["DELETE /plants/7"],
  ["GET /tags?limit=1&after=a"],
  ["GET /events?after=0&limit=5"],
  ["GET /me"],
];
const oddTexts = [
  ...[
    "",
    "0",
    "-1",
    "1e3",
    "9223372036854775808",
    "null",
    "id",
    "*",
    '"x"',
    'W/"x"',
    "\0",
    "\ufeff",
  ],
  ...["\u2028", "é", "🌱", "%00", "../", "'; DROP TABLE plants; --", "x".repeat(300), "gzip"],
  ...["application/jsonl", "text/plain", "application/json;charset=latin1"],
];
const oddJson = [
  ...["1e400", "-0", "1.0", "9007199254740993", "9223372036854775807", "9223372036854775808"],
  ...['"\\ud800"', '"\\u0000"', `"${"🌱".repeat(200)}"`, `"${"x".repeat(201)}"`, "[[[]]]", "{}"],
];
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const parameters = ["limit", "after", "include", "order", "q", "tag", "LIMIT", "__proto__", ""];
const headerNames = [
  ...["Idempotency-Key", "If-Match", "If-None-Match", "Content-Type", "Content-Encoding", "Origin"],
  ...["Accept", "X-Request-Id", "Authorization", "Last-Event-ID", "Range", "Cookie"],
];
const text = fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: "binary", maxLength: 12 }));
const json = fc.oneof(fc.constantFrom(...oddJson), fc.json({ maxDepth: 2 }));
const place = fc.double({ min: 0, max: 0.999, noNaN: true });
const replaceAt = (whole: string, at: number, by: string) =>
  whole.slice(0, at) + by + whole.slice(at + 1);

const variations = fc.oneof(
  fc.constantFrom(...methods).map((method) => () => ({ method })),
  fc.tuple(fc.constantFrom(...parameters), text).map(([name, value]) => ({ target }: Sent) => ({
    target: `${target}${target.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value.toWellFormed())}`,
  })),
  fc.tuple(place, text).map(([at, by]) => ({ target }: Sent) => ({
    target: `/${replaceAt(target.slice(1), at * target.length, encodeURIComponent(by.toWellFormed()))}`,
  })),
  // A header is one line of single bytes.
  fc.tuple(fc.constantFrom(...headerNames), text).map(([name, value]) => () => ({
    headers: { [name]: value.replace(/[^ -~\xa0-\xff]/g, "?") },
  })),
  fc.tuple(place, text).map(([at, by]) => ({ body = "" }: Sent) => ({
    body: replaceAt(body, at * body.length, by.toWellFormed()),
  })),
  fc
    .tuple(fc.constantFrom("name", "tag", "id", "ids", "__proto__", "other"), json)
    .map(([field, value]) => ({ body }: Sent) => ({
      // Of the last plant, if there are many.
      body: body?.replace(/\}(\]?)$/, (_, end) => `,"${field}":${value}}${end}`),
    })),
);

onEachEngine((garden) => {
  test("requests with changes get documented responses", async () => {
    const changed = fc.asyncProperty(fc.constantFrom(...plain), variations, async (row, vary) => {
      const [request, body] = row;
      const [method = "", target = ""] = request.split(" ");
      const sent: Sent = { method, target, body, headers: {} };
      const all: Sent = { ...sent, ...(vary(sent) as Partial<Sent>) };
      const isBodiless = ["GET", "HEAD"].includes(all.method);
      const { status } = await garden.ask(
        ...([
          `${all.method} ${all.target}`,
          isBodiless ? undefined : all.body,
          all.headers,
        ] as const),
      );
      expect(status).toBeLessThan(500);
    });
    await fc.assert(changed, { numRuns: 300, endOnFailure: true });
  });
});
