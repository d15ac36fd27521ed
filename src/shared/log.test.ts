/** The log as text, its levels, and none. As JSON it is seen from outside. */
import { expect, test } from "bun:test";
import { createLog, type Log, type LogFormat, type LogLevel, type RequestLine } from "./log.ts";

const line: RequestLine = {
  ...{ method: "GET", route: "/plants", status: 200, durationMs: 1.234567 },
  ...{ caller: { user: "alice", garden: "alice" }, requestId: "r-1" },
};

/** What a log writes until it is flushed. */
function logged(format: LogFormat, level: LogLevel, use: (log: Log) => void): string {
  let written = "";
  const log = createLog(format, (text) => (written += text), level);
  use(log);
  log.flush();
  return written;
}

test.each([
  [{}, "alice"],
  [{ caller: { user: "alice", garden: "team" } }, "alice in team"],
  [{ caller: undefined }, "-"],
  [
    { caller: { user: "alice", garden: "alice", tokenId: "4fQz" }, tokenError: "scope" },
    "alice (token 4fQz) token: scope",
  ],
])("a request with %p is one line of text: %s", (change, who) => {
  const text = logged("text", "info", (log) => log.request("info", { ...line, ...change }));
  expect(text).toMatch(/^\d\d:\d\d:\d\d {2}/);
  expect(text.slice(10)).toBe(`GET /plants 200  1.2 ms  ${who}  r-1\n`);
});

test.each([
  ["info", { url: "http://x" }, 'started url="http://x"\n'],
  ["warn", { text: "a\nb" }, 'warn: started text="a\\nb"\n'],
] as const)("an event of level %s is one line of text", (level, fields, expected) => {
  const text = logged("text", "info", (log) => log.event(level, "started", fields));
  expect(text.slice(10)).toBe(expected);
});

test("lines below the level are left out, and all of them if it is off", () => {
  const logAll = (log: Log) => {
    for (const level of ["debug", "info", "warn", "error"] as const) {
      log.request(level, line);
      log.event(level, "odd");
    }
  };
  const levels = logged("json", "warn", logAll).matchAll(/"level":"(\w+)"/g);
  expect([...levels].map(([, level]) => level)).toEqual(["warn", "warn", "error", "error"]);
  expect(logged("off", "debug", logAll)).toBe("");
});
