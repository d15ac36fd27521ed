/** Random changes of good requests: every response is as documented, and none is a 5xx. */
import { describe, expect, test } from "bun:test";
import fc, { type Arbitrary } from "fast-check";
import { type Document, DocumentedAnswers } from "./documented-responses.ts";
import { engines, openWorld } from "./scenarios/scenario.ts";

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

const goodRequests = [
  "GET /plants?limit=2&include=id",
  "GET /plants?tag=office&q=fern",
  "GET /plants/1",
  "GET /tags?limit=3",
  "GET /events?after=0&limit=2",
  "GET /me",
  "HEAD /plants",
  'POST /plants {"name":"Fern","tag":"office"}',
  'POST /plants {"name":"Moss","id":3}',
  'POST /plants/bulk [{"name":"Fern"},{"name":"Moss","tag":"office","id":2}]',
  'POST /plants/bulk-delete {"ids":[2,3]}',
  'PUT /plants/1 {"name":"Fern"}',
  "DELETE /plants/2",
  "OPTIONS /plants",
].map((line): Sent => {
  const [method = "", target = "", ...body] = line.split(" ");
  return { method, target, headers: {}, body: body.join(" ") || undefined };
});

const oddTexts = ["", "0", "-1", "1e3", "9223372036854775808", "null", "id,name", "*", 'W/"x"'];
oddTexts.push("\0", "\ufeff", "\u2028", "é", "🌱", "%00", "../", "'; DROP TABLE plants; --");
oddTexts.push("x".repeat(300), "application/jsonl", "application/json;charset=latin1", "gzip");
const oddJson = ["1e400", "-0", "1.0", "9007199254740993", "9223372036854775807", '"\\ud800"'];
oddJson.push('"\\u0000"', `"${"🌱".repeat(200)}"`, `"${"x".repeat(201)}"`, "[[[[]]]]", "{}");
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const parameters = ["limit", "after", "include", "fields", "LIMIT", "limit[]", "__proto__", ""];
const headerNames = ["Idempotency-Key", "If-Match", "If-None-Match", "Content-Type", "Accept"];
headerNames.push("Content-Encoding", "Origin", "X-Request-Id", "Authorization", "Range", "Cookie");

const text = fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: "binary", maxLength: 12 }));
const json = fc.oneof(fc.constantFrom(...oddJson), fc.json({ maxDepth: 2 }));
const place = fc.double({ min: 0, max: 0.999, noNaN: true });
const encode = (value: string) => encodeURIComponent(value.toWellFormed());

type Change = (sent: Sent) => Sent;
const changes: Arbitrary<Change> = fc.oneof(
  fc.constantFrom(...methods).map(
    (method): Change =>
      (sent) => ({ ...sent, method }),
  ),
  fc.tuple(fc.constantFrom(...parameters), text).map(
    ([name, value]): Change =>
      (sent) => {
        const separator = sent.target.includes("?") ? "&" : "?";
        return { ...sent, target: `${sent.target}${separator}${name}=${encode(value)}` };
      },
  ),
  fc.tuple(place, text).map(
    ([at, added]): Change =>
      (sent) => {
        const index = 1 + Math.floor(at * (sent.target.length - 1));
        const [before, after] = [sent.target.slice(0, index), sent.target.slice(index + 1)];
        return { ...sent, target: before + encode(added) + after };
      },
  ),
  fc.tuple(fc.constantFrom(...headerNames), text).map(
    ([name, value]): Change =>
      (sent) => {
        // A header is one line of single bytes.
        const line = value.replace(/[^ -~\xa0-\xff]/g, "?");
        return { ...sent, headers: { ...sent.headers, [name]: line } };
      },
  ),
  fc.tuple(place, text).map(
    ([at, added]): Change =>
      ({ body = "", ...sent }) => {
        const index = Math.floor(at * body.length);
        return { ...sent, body: body.slice(0, index) + added + body.slice(index + 1) };
      },
  ),
  fc.tuple(fc.constantFrom("name", "tag", "id", "__proto__", "other"), json).map(
    ([field, value]): Change =>
      (sent) => {
        // Of the last plant, if there are many.
        const added = sent.body?.replace(/\}(\]?)$/, (_, end) => `,"${field}":${value}}${end}`);
        return { ...sent, body: added?.replace("{,", "{") };
      },
  ),
);

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);

  test("requests with changes get documented responses", async () => {
    const token = await world.makeToken({ user: "ann" });
    const document: Document = await (await world.fetch("GET /openapi.json")).json();
    const documented = new DocumentedAnswers(document);
    const templates = Object.keys(document.paths).map(
      (path) => [path, new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`)] as const,
    );
    const property = fc.asyncProperty(
      fc.constantFrom(...goodRequests),
      changes,
      async (sent, by) => {
        const { method, target, headers, body } = by(sent);
        const mayHaveBody = !["GET", "HEAD"].includes(method) && body !== undefined;
        const response = await world.fetch(`${method} ${target}`, {
          headers: {
            authorization: `Bearer ${token}`,
            ...(mayHaveBody && { "content-type": "application/json" }),
            ...headers,
          },
          ...(mayHaveBody && { body }),
        });
        const { status } = response;
        // The runtime sends no body to a HEAD.
        const received = method === "HEAD" ? "" : await response.text();
        expect(status).toBeLessThan(500);
        const [path = ""] = target.split("?");
        const [template] = templates.find(([, pattern]) => pattern.test(path)) ?? [];
        const operation = document.paths[template ?? ""]?.[method.toLowerCase()];
        if (template === undefined || operation === undefined) return;
        const fault = documented.findFault(template, method.toLowerCase(), {
          status,
          header: (name) => response.headers.get(name) ?? undefined,
          text: received,
        });
        expect(fault).toBeUndefined();
        // What is accepted fits the documented schema.
        const schema = operation.requestBody?.content["application/json"]?.schema;
        if (status >= 300 || schema === undefined || !mayHaveBody) return;
        expect(documented.findMismatch(schema, JSON.parse(body))).toBeUndefined();
      },
    );
    await fc.assert(property, { numRuns: 1_000 });
  });
});
