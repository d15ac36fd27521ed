/** The log as text, its levels, and none. As JSON it is seen from outside. */
import { describe, expect, test } from "bun:test";
import { createLog, type Log, type LogFormat, type LogLevel, type RequestLine } from "./log.ts";

const requestByAlice: RequestLine = {
  method: "GET",
  route: "/plants",
  status: 200,
  durationMs: 1.234567,
  caller: { user: "alice", garden: "alice" },
  requestId: "r-1",
};

/** What a log has written once it is flushed. */
function logged(format: LogFormat, level: LogLevel, use: (log: Log) => void): string {
  let written = "";
  const log = createLog(format, (text) => (written += text), level);
  use(log);
  log.flush();
  return written;
}

/** A line of text without its time, which every line starts with. */
function withoutTime(text: string): string {
  expect(text).toMatch(/^\d\d:\d\d:\d\d {2}/);
  return text.slice("12:34:56  ".length);
}

describe("a request is one line of text", () => {
  function loggedRequest(request: RequestLine): string {
    return withoutTime(logged("text", "info", (log) => log.request("info", request)));
  }

  test("with the user, if the garden is the user's own", () => {
    expect(loggedRequest(requestByAlice)).toBe("GET /plants 200  1.2 ms  alice  r-1\n");
  });

  test("with the user and the garden, if the garden has another name", () => {
    const caller = { user: "alice", garden: "team" };

    expect(loggedRequest({ ...requestByAlice, caller })).toBe(
      "GET /plants 200  1.2 ms  alice in team  r-1\n",
    );
  });

  test("with a dash, if the caller isn't known", () => {
    expect(loggedRequest({ ...requestByAlice, caller: undefined })).toBe(
      "GET /plants 200  1.2 ms  -  r-1\n",
    );
  });

  test("with the token and why it was refused", () => {
    const caller = { user: "alice", garden: "alice", tokenId: "4fQz" };

    expect(loggedRequest({ ...requestByAlice, caller, tokenError: "scope" })).toBe(
      "GET /plants 200  1.2 ms  alice (token 4fQz) token: scope  r-1\n",
    );
  });
});

describe("an event is one line of text", () => {
  test("with its fields", () => {
    const text = logged("text", "info", (log) => log.event("info", "started", { url: "http://x" }));

    expect(withoutTime(text)).toBe('started url="http://x"\n');
  });

  test("with its level unless that is info, and without the line breaks of its fields", () => {
    const text = logged("text", "info", (log) => log.event("warn", "started", { text: "a\nb" }));

    expect(withoutTime(text)).toBe('warn: started text="a\\nb"\n');
  });
});

describe("a log", () => {
  function logAllLevels(log: Log): void {
    for (const level of ["debug", "info", "warn", "error"] as const) {
      log.request(level, requestByAlice);
      log.event(level, "odd");
    }
  }

  test("leaves out lines below its level", () => {
    const lines = logged("json", "warn", logAllLevels).trimEnd().split("\n");

    expect(lines.map((line) => JSON.parse(line).level)).toEqual(["warn", "warn", "error", "error"]);
  });

  test("that is off writes nothing", () => {
    expect(logged("off", "debug", logAllLevels)).toBe("");
  });
});
