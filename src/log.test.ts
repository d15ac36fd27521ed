/** The log as text, its levels, and none. As JSON it is seen from outside. */
import { describe, expect, test } from "bun:test";
import { createLog, type LogFormat, type LogLevel, type RequestLine } from "./log.ts";

const nowMs = Date.UTC(2030, 0, 2, 3, 4, 5, 678);
const line: RequestLine = {
  method: "GET",
  route: "/plants",
  status: 200,
  durationMs: 1.234567,
  user: "alice",
  garden: "alice",
  requestId: "r-1",
};

function open(format: LogFormat, level?: LogLevel) {
  const written: string[] = [];
  const log = createLog(
    format,
    (text) => written.push(text),
    level,
    () => nowMs,
  );
  return { log, written };
}

describe("as text", () => {
  test.each([
    ["the user's own garden", {}, "alice"],
    ["a garden that a known token opens", { tokenId: "4fQz81LmXa" }, "alice (token 4fQz81LmXa)"],
    ["another garden", { garden: "team" }, "alice in team"],
    ["nobody", { user: undefined, garden: undefined }, "-"],
    [
      "nobody, with a refused JWT",
      { user: undefined, garden: undefined, tokenError: "aud" },
      "token: aud",
    ],
  ])("a request in %s is one line", (_case, change, who) => {
    const { log, written } = open("text");
    log.request("info", { ...line, ...change });
    log.flush();
    expect(written[0]).toMatch(/^\d\d:\d\d:\d\d {2}/);
    expect(written[0]?.slice(10)).toBe(`GET /plants 200  1.2 ms  ${who}  r-1\n`);
  });

  test.each([
    ["info", {}, "started\n"],
    ["info", { url: "http://x" }, 'started url="http://x"\n'],
    ["warn", { text: "a\nb" }, 'warn: started text="a\\nb"\n'],
  ] as const)("an event of level %s is one line", (level, fields, expected) => {
    const { log, written } = open("text");
    log.event(level, "started", fields);
    log.flush();
    expect(written[0]?.slice(10)).toBe(expected);
  });
});

test("when it is off, nothing is written", () => {
  const { log, written } = open("off");
  log.request("info", line);
  log.event("error", "x");
  log.flush();
  expect(written).toEqual([]);
});

test("lines below the level are left out", () => {
  const { log, written } = open("json", "warn");
  for (const level of ["debug", "info", "warn", "error"] as const) {
    log.request(level, line);
    log.event(level, "odd");
  }
  log.flush();
  const levels = (written[0] ?? "")
    .trim()
    .split("\n")
    .map((each) => JSON.parse(each).level);
  expect(levels).toEqual(["warn", "warn", "error", "error"]);
});
