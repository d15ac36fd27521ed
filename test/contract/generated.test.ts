/** Requests with random changes: whatever comes back is documented, and none of it is a 5xx. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { onEachEngine } from "./garden.ts";

const requests: readonly (readonly [method: string, target: string, body?: string])[] = [
  ["GET", "/plants?limit=2&after=1&tag=a&order=desc&include=id&q=fern"],
  ["POST", "/plants?include=id", '{"name":"Fern","tag":"a","id":7}'],
  ["POST", "/plants/bulk", '[{"name":"Fern"},{"name":"Ivy","id":8}]'],
  ["POST", "/plants/bulk-delete", '{"ids":[7,8]}'],
  ["GET", "/plants/7?include=id"],
  ["PUT", "/plants/7", '{"name":"Moss","tag":"b"}'],
  ["PATCH", "/plants/7", '{"tag":"c"}'],
  ["POST", "/plants/bulk-update", '{"ids":[7,8],"set":{"tag":"d"}}'],
  ["DELETE", "/plants/7"],
  ["GET", "/tags?limit=1&after=a"],
  ["GET", "/events?after=0&limit=5"],
  ["GET", "/me"],
];
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const parameters = ["limit", "after", "include", "order", "q", "tag", "LIMIT", "__proto__", ""];
const headerNames = [
  ...["Idempotency-Key", "If-Match", "If-None-Match", "Content-Type", "Content-Encoding", "Origin"],
  ...["Accept", "X-Request-Id", "Authorization", "Last-Event-ID", "Range", "Cookie"],
];
const oddTexts = [
  ...["", "0", "-1", "1e3", "9223372036854775808", "null", "id", "*", '"x"', 'W/"x"', "\0"],
  ...["\u2028", "\ufeff", "é", "🌱", "%00", "../", "'; DROP TABLE plants; --", "x".repeat(300)],
  ...["application/jsonl", "text/plain", "text/event-stream", "application/json;charset=latin1"],
];
const oddJson = [
  ...["1e400", "-0", "1.0", "9007199254740993", "9223372036854775807", "9223372036854775808"],
  ...['"\\ud800"', '"\\u0000"', `"${"🌱".repeat(200)}"`, `"${"x".repeat(201)}"`, "[[[]]]", "{}"],
];
const replaceAt = (text: string, at: number, by: string) =>
  text.slice(0, at) + by + text.slice(at + 1);

/** Which part of the request changes, where, and to what. */
const changes = fc.record({
  part: fc.constantFrom("method", "parameter", "target", "header", "field", "body"),
  method: fc.constantFrom(...methods),
  parameter: fc.constantFrom(...parameters),
  header: fc.constantFrom(...headerNames),
  field: fc.constantFrom("name", "tag", "id", "ids", "__proto__", "other"),
  at: fc.double({ min: 0, max: 0.999, noNaN: true }),
  text: fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: "binary", maxLength: 12 })),
  json: fc.oneof(fc.constantFrom(...oddJson), fc.json({ maxDepth: 2 })),
});

onEachEngine(({ call }) => {
  test("requests with changes get documented responses", async () => {
    const property = fc.asyncProperty(fc.constantFrom(...requests), changes, async (plain, by) => {
      let [method, target, body] = plain;
      const headers: Record<string, string> = {};
      const text = by.text.toWellFormed();
      const encoded = encodeURIComponent(text);
      if (by.part === "method") method = by.method;
      if (by.part === "parameter")
        target += `${target.includes("?") ? "&" : "?"}${by.parameter}=${encoded}`;
      if (by.part === "target")
        target = `/${replaceAt(target.slice(1), by.at * target.length, encoded)}`;
      // A header is one line of single bytes.
      if (by.part === "header") headers[by.header] = text.replace(/[^ -~\xa0-\xff]/g, "?");
      if (by.part === "body") body = body && replaceAt(body, by.at * body.length, text);
      // Of the last plant, if there are many.
      if (by.part === "field") body = body?.replace(/\}(?=\]?$)/, `,"${by.field}":${by.json}}`);
      const sent = ["GET", "HEAD"].includes(method) ? undefined : body;
      expect((await call(`${method} ${target}`, "any", sent, headers)).status).toBeLessThan(500);
    });
    await fc.assert(property, { numRuns: 300, endOnFailure: true });
  });
});
