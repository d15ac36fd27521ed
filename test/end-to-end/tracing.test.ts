/** The spans of requests, as a collector gets them from the real program. */
import { afterAll, expect, test } from "bun:test";
import { startService, waitFor } from "./running-service.ts";

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly { key: string; value: Record<string, string> }[];
}

let spans: SentSpan[] = [];
const collector = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { resourceSpans } = (await request.json()) as {
      resourceSpans: { scopeSpans: { spans: SentSpan[] }[] }[];
    };
    spans.push(...resourceSpans.flatMap((each) => each.scopeSpans).flatMap((each) => each.spans));
    return Response.json({});
  },
});
afterAll(() => collector.stop(true));

const args = ["--trace-endpoint", `http://127.0.0.1:${collector.port}`, "--threads", "2"];
const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const callerSpan = "00f067aa0ba902b7";
const traceparent = `00-${traceId}-${callerSpan}-01`;

function attributeOf(span: SentSpan | undefined, name: string): string | undefined {
  const value = span?.attributes.find(({ key }) => key === name)?.value ?? {};
  return Object.values(value)[0];
}

test("a request is seen through all its stages, in the trace of its caller", async () => {
  await using service = await startService({ args });
  const created = await service.call("POST /plants", {
    body: '{"name":"Fern"}',
    headers: { traceparent, "X-Request-Id": "asked" },
  });
  expect(created.status).toBe(201);
  await waitFor(() => (spans.length > 0 ? true : undefined));

  const [whole, ...stages] = spans;
  expect(whole).toMatchObject({ name: "POST /plants", traceId, parentSpanId: callerSpan });
  expect(attributeOf(whole, "http.response.status_code")).toBe("201");
  expect(attributeOf(whole, "plantstore.request_id")).toBe("asked");
  expect(stages.map(({ name }) => name)).toEqual([
    "authenticate",
    "read request",
    "createPlant",
    "respond",
  ]);
  for (const stage of stages) {
    expect(stage).toMatchObject({ traceId, parentSpanId: whole?.spanId });
  }
  await waitFor(() => service.output().out.includes(`"traceId":"${traceId}"`) || undefined);

  // What waits is sent before it stops; what the caller does not want recorded is not.
  spans = [];
  await service.call("GET /plants", { headers: { traceparent: `${traceparent.slice(0, -2)}00` } });
  await service.call("GET /plants?limit=x");
  service.signal("SIGTERM");
  expect(await service.exited).toBe(0);
  const wholes = spans.filter(({ name }) => name === "GET /plants");
  expect(wholes.map((span) => attributeOf(span, "http.response.status_code"))).toEqual(["400"]);
  expect(wholes[0]?.traceId).not.toBe(traceId);
});

test("requests do not mind a collector that is away", async () => {
  await using service = await startService({ args: ["--trace-endpoint", "http://127.0.0.1:1"] });
  expect((await service.call("GET /plants")).status).toBe(200);
  await waitFor(() => service.output().out.includes('"event":"spans dropped"') || undefined);
  await waitFor(async () => {
    const metrics = await (await service.call("GET /metrics")).text();
    return /^plantstore_dropped_spans_total [1-9]/m.test(metrics) || undefined;
  });
});
