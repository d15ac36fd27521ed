/** What reaches a collector, and how many spans may wait for it. */
import { expect, test } from "bun:test";
import { type Span, SpanExporter } from "./span-exporter.ts";

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

function makeExporter(endpoint: string, onDrop = (_count: number, _reason: string) => {}) {
  return new SpanExporter({ endpoint, headers: { "api-key": "secret" }, version: "1.2.3", onDrop });
}

test("a span goes out in the form that OTLP gives it, with the collector's headers", async () => {
  let request = "";
  let body = "";
  using collector = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(sent) {
      request = `${sent.method} ${new URL(sent.url).pathname} ${sent.headers.get("api-key")}`;
      body = await sent.text();
      return Response.json({});
    },
  });
  const exporter = makeExporter(collector.url.origin);
  exporter.add([span]);
  await exporter.flush();
  expect(request).toBe("POST /v1/traces secret");
  const { resourceSpans } = JSON.parse(body);
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

test("8,192 spans may wait, and not one more", () => {
  const drops: [number, string][] = [];
  const exporter = makeExporter("http://127.0.0.1:1", (...drop) => drops.push(drop));
  exporter.add(Array.from({ length: 8_191 }, () => span));
  // A batch is on its way and waits no more.
  const room = 8_192 - 8_191 + 512;
  for (let count = 0; count < room; count++) exporter.add([span]);
  expect(drops).toEqual([]);
  exporter.add([span]);
  expect(drops).toEqual([[1, "too many are waiting"]]);
});
