/** The trace of a request: which header it continues, its times, and whether it is recorded. */
import { afterEach, describe, expect, setSystemTime, test } from "bun:test";
import { RequestTrace, readTraceparent } from "./request-trace.ts";
import type { Span } from "./span-exporter.ts";

const end = { method: "GET", route: "/plants", status: 200, requestId: "r", garden: "g" };
const hourMs = 3_600_000;
const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";

afterEach(() => {
  setSystemTime();
});

test("a trace has the time of the system's clock, even after the clock was set", () => {
  setSystemTime(Date.now() + hourMs);
  const spans: Span[] = [];
  const trace = new RequestTrace(undefined, true, (taken) => spans.push(...taken));
  trace.enter("authenticate");
  trace.end(end);
  expect(spans).toHaveLength(2);
  for (const { startedAtMs } of spans) {
    expect(Math.abs(startedAtMs - Date.now())).toBeLessThan(hourMs / 2);
  }
});

describe("the header traceparent", () => {
  test("of a later version counts, even with more after it", () => {
    expect(readTraceparent(`01-${traceId}-${spanId}-01`)).toBeDefined();
    expect(readTraceparent(`cc-${traceId}-${spanId}-01-what-comes`)).toBeDefined();
  });

  test.each([
    ["none", null],
    ["a version that there cannot be", `ff-${traceId}-${spanId}-01`],
    ["more than its version has", `00-${traceId}-${spanId}-01-more`],
    ["capital letters", `00-${traceId.toUpperCase()}-${spanId}-01`],
    ["a trace of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["a span of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["a long span", `00-${traceId}-${spanId}0-01`],
  ])("with %s begins a new trace", (_, header) => {
    expect(readTraceparent(header)).toBeUndefined();
  });
});
