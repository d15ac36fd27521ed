/** One line per event, as JSON or as text, buffered. */
import { afterEach, describe, expect, jest, test } from "bun:test";
import { PlantStoreError } from "./domain/errors.ts";
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

describe("as JSON", () => {
  test("a request is one line with all that is known of it", () => {
    const { log, written } = open("json");
    log.request("info", line);
    log.flush();
    expect(written).toHaveLength(1);
    expect(written[0]).toEndWith("}\n");
    expect(JSON.parse(written[0] ?? "")).toEqual({
      time: "2030-01-02T03:04:05.678Z",
      level: "info",
      event: "request",
      ...line,
      durationMs: 1.235,
    });
  });

  test("a request without a caller has no user and no garden", () => {
    const { log, written } = open("json");
    log.request("info", { ...line, user: undefined, garden: undefined });
    log.flush();
    expect(Object.keys(JSON.parse(written[0] ?? ""))).not.toContain("user");
  });

  test("an event is one line, whatever its fields hold", () => {
    const { log, written } = open("json");
    log.event("warn", "odd", { text: "a\nb", count: 1 });
    log.flush();
    expect(written[0]?.match(/\n/g)).toHaveLength(1);
    expect(JSON.parse(written[0] ?? "")).toMatchObject({
      level: "warn",
      event: "odd",
      text: "a\nb",
      count: 1,
    });
  });

  test("an error is shown with its stack and its cause", () => {
    const { log, written } = open("json");
    const error = new PlantStoreError("unavailable", "No disk.", { cause: new Error("EIO") });
    log.event("error", "request failed", { error });
    log.flush();
    expect(JSON.parse(written[0] ?? "").error).toEqual({
      name: "PlantStoreError",
      message: "No disk.",
      stack: expect.stringContaining("log.test.ts"),
      cause: expect.objectContaining({ name: "Error", message: "EIO" }),
    });
  });
});

describe("as text", () => {
  test.each([
    ["the user's own garden", {}, "alice"],
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

describe("lines", () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  test("are written together and in order after 50 ms, and not before", () => {
    jest.useFakeTimers();
    const { log, written } = open("json");
    log.event("info", "first");
    jest.advanceTimersByTime(40);
    log.event("info", "second");
    jest.advanceTimersByTime(9);
    expect(written).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(written.map((text) => text.match(/first|second/g))).toEqual([["first", "second"]]);
    jest.advanceTimersByTime(1000);
    expect(written).toHaveLength(1);
  });

  test.each([
    [64 * 1024 - 1, 0],
    [64 * 1024, 1],
  ])("of %i characters are written at once: %i", (characters, expected) => {
    jest.useFakeTimers();
    const probe = open("json");
    probe.log.event("info", "");
    probe.log.flush();
    const emptyCharacters = probe.written[0]?.length ?? 0;
    const { log, written } = open("json");
    log.event("info", "x".repeat(characters - emptyCharacters));
    expect(written).toHaveLength(expected);
    log.flush();
  });
});
