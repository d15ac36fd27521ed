/** The times of a trace: by the clock of the system, whatever becomes of it. */
import { afterEach, expect, setSystemTime, test } from "bun:test";
import { RequestTrace } from "./request-trace.ts";
import type { Span } from "./span.ts";

const end = { method: "GET", route: "/plants", status: 200, requestId: "r", garden: "g" };
const hourMs = 3_600_000;

afterEach(() => {
  setSystemTime();
});

function beginTrace() {
  const spans: Span[] = [];
  const trace = new RequestTrace(undefined, true, (taken) => spans.push(...taken));
  trace.enter("authenticate");
  return { trace, spans };
}

test.each([0, hourMs, -hourMs])("a trace is of now, by a clock that was set by %i ms", (setMs) => {
  setSystemTime(Date.now() + setMs);
  const { trace, spans } = beginTrace();
  trace.end(end);
  expect(spans).toHaveLength(2);
  for (const { startedAtMs } of spans) {
    expect(Math.abs(startedAtMs - Date.now())).toBeLessThan(hourMs / 2);
  }
});

test("no span ends before it begins, though the clock is set back meanwhile", () => {
  const { trace, spans } = beginTrace();
  setSystemTime(Date.now() - hourMs);
  trace.end(end);
  for (const { startedAtMs, endedAtMs } of spans) {
    expect(endedAtMs).toBeGreaterThanOrEqual(startedAtMs);
  }
});
