/** Answers byte for byte; test/reliability/hostile/ has what no well-behaved client sends. */
import { afterAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { skipsOutsideLinux } from "../skipping.ts";
import { startService } from "./running-service.ts";

const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());

/** Sends text as it is, and takes what comes back until the service closes the connection. */
function send(request: string): Promise<string> {
  const socket = connect(service.port, "127.0.0.1");
  socket.write(request);
  return text(socket);
}

describe("a path that a proxy's rules may not recognise:", () => {
  // Each is /metrics once dot segments and backslashes are resolved, as the runtime does.
  const hidden = [
    ...["/.\\metrics", "/x\\..\\metrics", "/./metrics", "/x/../metrics", "/%2e/metrics"],
    ...[
      "/%2E%2e/metrics",
      "/plants/../metrics?x",
      "/assets/%2e%2e\\metrics",
      "http://a/x/../metrics",
    ],
  ];
  const absent = ["//metrics", "/\\metrics", "/%6detrics", "/metrics/", "/metrics%20", "/METRICS"];
  const plain = ["/metrics", "/", "/healthz", "/docs", "http://a/metrics", "http://a/", "http://a"];

  test.each([
    ...hidden.map((target) => [target, 400] as const),
    ...absent.map((target) => [target, 404] as const),
    ...plain.map((target) => [target, 200] as const),
  ])("%s is %d", async (target, status) => {
    const head = `HEAD ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
    expect(await send(head)).toStartWith(`HTTP/1.1 ${status}`);
  });

  test("is what the problem lists", async () => {
    const get = "GET /plants/../metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    expect(await send(get)).toContain('"errors":[{"parameter":"path","detail":"');
  });
});

test.skipIf(skipsOutsideLinux())("takes no name that another user could take", async () => {
  expect(await Bun.file("/proc/net/unix").text()).not.toContain(`-${service.port}`);
});

test("a health check without Host, as HAProxy sends it by HTTP/1.0, gets its response", async () => {
  for (const path of ["/healthz", "/readyz"]) {
    expect(await send(`GET ${path} HTTP/1.0\r\n\r\n`)).toStartWith("HTTP/1.1 200");
  }
  expect(await send("GET /plants HTTP/1.0\r\n\r\n")).toStartWith("HTTP/1.1 400");
});
