/** What reaches a collector, and what happens to spans that it does not take. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type Span, SpanExporter } from "./span-exporter.ts";

let bodies: string[] = [];
let sentHeaders: Headers[] = [];
let respond = () => Response.json({});
let drops: [number, string][] = [];
let collector: ReturnType<typeof start>;

function start() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      bodies.push(`${request.method} ${new URL(request.url).pathname} ${await request.text()}`);
      sentHeaders.push(request.headers);
      return respond();
    },
  });
}

beforeEach(() => {
  bodies = [];
  sentHeaders = [];
  drops = [];
  respond = () => Response.json({});
  collector = start();
});
afterEach(() => collector.stop(true));

function makeExporter(endpoint = `http://127.0.0.1:${collector.port}`): SpanExporter {
  return new SpanExporter({
    endpoint,
    headers: { "api-key": "secret" },
    version: "1.2.3",
    onDrop: (count, reason) => drops.push([count, reason]),
  });
}

const span: Span = {
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  spanId: "00f067aa0ba902b7",
  parentSpanId: undefined,
  name: "GET /plants",
  kind: "server",
  startedAtMs: 1_763_190_000_000.25,
  endedAtMs: 1_763_190_000_001.5,
  isFailed: true,
  attributes: { "http.response.status_code": 500, "http.route": "/plants" },
};

test("a span goes out in the form that OTLP gives it, with the collector's headers", async () => {
  const exporter = makeExporter();
  exporter.add([span]);
  await exporter.flush();
  expect(bodies).toHaveLength(1);
  expect(bodies[0]).toStartWith("POST /v1/traces ");
  expect(sentHeaders[0]?.get("api-key")).toBe("secret");
  const { resourceSpans } = JSON.parse(bodies[0]?.slice("POST /v1/traces ".length) ?? "");
  expect(resourceSpans[0].resource.attributes).toContainEqual({
    key: "service.name",
    value: { stringValue: "plantstore" },
  });
  expect(resourceSpans[0].scopeSpans[0].spans).toEqual([
    {
      traceId: span.traceId,
      spanId: span.spanId,
      name: "GET /plants",
      kind: 2,
      startTimeUnixNano: "1763190000000250000",
      endTimeUnixNano: "1763190000001500000",
      attributes: [
        { key: "http.response.status_code", value: { intValue: "500" } },
        { key: "http.route", value: { stringValue: "/plants" } },
      ],
      status: { code: 2 },
    },
  ]);
});

test("spans are dropped if the collector refuses or is away, and counted", async () => {
  respond = () => new Response("", { status: 503 });
  const refused = makeExporter();
  refused.add([span, span]);
  await refused.flush();
  await collector.stop(true);
  const away = makeExporter();
  away.add([span]);
  await away.flush();
  expect(drops.map(([count]) => count)).toEqual([2, 1]);
  expect(drops[0]?.[1]).toBe("the collector responded with 503");
});

test("8,192 spans may wait, and not one more", () => {
  const exporter = makeExporter("http://127.0.0.1:1");
  exporter.add(Array.from({ length: 8_191 }, () => span));
  // A batch is on its way and waits no more.
  const room = 8_192 - 8_191 + 512;
  for (let count = 0; count < room; count++) exporter.add([span]);
  expect(drops).toEqual([]);
  exporter.add([span]);
  expect(drops).toEqual([[1, "too many are waiting"]]);
});
