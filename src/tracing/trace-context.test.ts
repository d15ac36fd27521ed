/** Which headers count as the context of a trace. */
import { describe, expect, test } from "bun:test";
import { makeSpanId, makeTraceId, readTraceparent, writeTraceparent } from "./trace-context.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";

describe("the header traceparent", () => {
  test.each([
    ["01", true],
    ["00", false],
    ["03", true],
    ["02", false],
  ])("with the flags %s says whether the trace is recorded", (flags, isSampled) => {
    const context = readTraceparent(`00-${traceId}-${spanId}-${flags}`);
    expect(context).toEqual({ traceId, spanId, isSampled });
  });

  test("of a later version counts, with more behind it", () => {
    expect(readTraceparent(`01-${traceId}-${spanId}-01`)).toBeDefined();
    expect(readTraceparent(`cc-${traceId}-${spanId}-01-what-comes`)).toBeDefined();
  });

  test.each([
    ["none", null],
    ["nothing", ""],
    ["a version that there cannot be", `ff-${traceId}-${spanId}-01`],
    ["more than its version has", `00-${traceId}-${spanId}-01-more`],
    ["capital letters", `00-${traceId.toUpperCase()}-${spanId}-01`],
    ["a trace of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["a span of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["a short trace", `00-${traceId.slice(1)}-${spanId}-01`],
    ["a long span", `00-${traceId}-${spanId}0-01`],
    ["no flags", `00-${traceId}-${spanId}`],
  ])("with %s begins a new trace", (_, header) => {
    expect(readTraceparent(header)).toBeUndefined();
  });

  test("is read as it was written", () => {
    const context = { traceId: makeTraceId(), spanId: makeSpanId(), isSampled: true };
    expect(readTraceparent(writeTraceparent(context))).toEqual(context);
  });
});

test("ids differ each time", () => {
  const ids = Array.from({ length: 1_000 }, () => [makeTraceId(), makeSpanId()]).flat();
  expect(new Set(ids).size).toBe(2_000);
});
