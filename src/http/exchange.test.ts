/** The log line of refused requests: one for all of a second. */
import { expect, jest, test } from "bun:test";
import { createLog } from "../log.ts";
import { createOverloadLog } from "./exchange.ts";

test("says once a second how many were refused, and nothing when none was", () => {
  jest.useFakeTimers();
  try {
    let written = "";
    const log = createLog("json", (lines) => {
      written += lines;
    });
    const note = createOverloadLog(log);
    for (const count of [3, 0, 2]) {
      for (let index = 0; index < count; index++) note();
      jest.advanceTimersByTime(1_000);
    }
    log.flush();
    const events = written.trim().split("\n");
    expect(events.map((line) => JSON.parse(line))).toMatchObject([
      { level: "warn", event: "overloaded", refused: 3 },
      { level: "warn", event: "overloaded", refused: 2 },
    ]);
    expect(events).toHaveLength(2);
  } finally {
    jest.useRealTimers();
  }
});
