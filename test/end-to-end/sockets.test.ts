/** Responses byte for byte; proofs/hostile/ has what no well-behaved client sends. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { skipsOutsideLinux, skipsWithout } from "../skipping.ts";
import { startService } from "./running-service.ts";

const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());

/** Sends text as it is, and takes what comes back until the service closes the connection. */
function send(request: string): Promise<string> {
  const socket = connect(service.port, "127.0.0.1");
  socket.write(request);
  return text(socket);
}

describe("a path that a proxy's rules may not recognize:", () => {
  // Each is /metrics once dot segments and backslashes are resolved, as the runtime does.
  const hidden = [
    "/.\\metrics",
    "/x\\..\\metrics",
    "/./metrics",
    "/x/../metrics",
    "/%2e/metrics",
    "/%2E%2e/metrics",
    "/plants/../metrics?x",
    "/assets/%2e%2e\\metrics",
    "http://a/x/../metrics",
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

test.skipIf(skipsOutsideLinux() || skipsWithout("prlimit"))(
  "out of file descriptors, it says so, stays calm, and accepts connections again",
  async () => {
    await using crowded = await startService({ args: ["--threads", "1"] });
    const { pid, port, output } = crowded;
    Bun.spawnSync(["prlimit", "--pid", String(pid), "--nofile=100"]);
    const idle = Array.from({ length: 120 }, () => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      return socket;
    });
    const deadlineMs = performance.now() + 10_000;
    const isOut = () => output().out.includes("out of file descriptors");
    while (!isOut() && performance.now() < deadlineMs) await Bun.sleep(50);
    expect(isOut()).toBe(true);
    const beforeMs = processorMs(pid);
    await Bun.sleep(2_000);
    expect(processorMs(pid) - beforeMs).toBeLessThan(1_000);
    for (const socket of idle) socket.destroy();
    let status = 0;
    while (status !== 200 && performance.now() < deadlineMs) {
      status = await crowded.call("GET /healthz").then(
        (response) => response.status,
        () => 0,
      );
      await Bun.sleep(100);
    }
    expect(status).toBe(200);
  },
  20_000,
);

/** The processor time that a process has used. */
function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

test("a health check without Host, as HAProxy sends it by HTTP/1.0, gets its response", async () => {
  for (const path of ["/healthz", "/readyz"]) {
    expect(await send(`GET ${path} HTTP/1.0\r\n\r\n`)).toStartWith("HTTP/1.1 200");
  }
  expect(await send("GET /plants HTTP/1.0\r\n\r\n")).toStartWith("HTTP/1.1 400");
});
