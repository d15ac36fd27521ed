/** Answers byte for byte; test/reliability/hostile/ has what no well-behaved client sends. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningService, sendRaw, startService } from "./running-service.ts";

let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service[Symbol.asyncDispose]());

function request(line: string, headers: readonly string[], body = ""): string {
  const { token } = service;
  const all = [`${line} HTTP/1.1`, `Authorization: Bearer ${token}`, ...headers, "", body];
  return all.join("\r\n");
}

function statusesOf(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
}

describe("a path that a proxy's rules do not recognise", () => {
  // Each is /metrics once dot segments and backslashes are resolved, as the runtime does.
  const hidden = [
    "/.\\metrics",
    "/x\\..\\metrics",
    "/./metrics",
    "/x/../metrics",
    "/%2e/metrics",
    "/%2E%2e/metrics",
    "/plants/..\\metrics",
    "/plants/../metrics?x",
    "/assets/..\\metrics",
    "/assets/%2e%2e\\metrics",
    "http://a/x/../metrics",
  ];
  test.each(hidden)("gets no metrics: %s", async (target) => {
    const answer = await sendRaw(
      service.port,
      request(`GET ${target}`, ["Host: a", "Connection: close"]),
    );
    expect(statusesOf(answer)).toEqual([400]);
    expect(answer).toContain("urn:plantstore:problem:invalid-request");
  });

  test.each(["//metrics", "/\\metrics", "/%6detrics", "/metrics/", "/metrics%20", "/METRICS"])(
    "is not there: %s",
    async (target) => {
      const answer = await sendRaw(
        service.port,
        request(`GET ${target}`, ["Host: a", "Connection: close"]),
      );
      expect(statusesOf(answer)).toEqual([404]);
    },
  );

  test.each(["/metrics", "/", "/healthz", "/docs", "http://a/metrics", "http://a/", "http://a"])(
    "is not %s",
    async (target) => {
      const answer = await sendRaw(
        service.port,
        request(`HEAD ${target}`, ["Host: a", "Connection: close"]),
      );
      expect(statusesOf(answer)).toEqual([200]);
    },
  );
});

test.if(process.platform === "linux")("takes no name that another user could take", async () => {
  expect(await Bun.file("/proc/net/unix").text()).not.toContain(`-${service.port}`);
});

test("a health check without Host, as HAProxy sends it by HTTP/1.0, gets its response", async () => {
  for (const path of ["/healthz", "/readyz"]) {
    expect(await sendRaw(service.port, `GET ${path} HTTP/1.0\r\n\r\n`)).toStartWith("HTTP/1.1 200");
  }
  expect(await sendRaw(service.port, "GET /plants HTTP/1.0\r\n\r\n")).toStartWith("HTTP/1.1 400");
});
