/** A stop doesn't wait for idle connections, whose clients may never look at them again. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { drainMs } from "../../src/server/listener.ts";
import { startService } from "../end-to-end/running-service.ts";

const certificate = (name: string) => join(import.meta.dir, "../certificates", name);

test.each([
  ["HTTP", []],
  ["TLS", ["--tls-cert", certificate("server.pem"), "--tls-key", certificate("server-key.pem")]],
])(
  "over %s, it ends long before its deadline",
  async (_, args) => {
    await using service = await startService({ args: ["--threads", "2", ...args] });
    const tls = args.length > 0 ? { rejectUnauthorized: false } : false;
    const script = `
      const request = "GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n";
      let responses = 0;
      function data() {
        if (++responses === 8) process.stdout.write("done");
      }
      const socket = { open: (each) => each.write(request), data };
      const options = ${JSON.stringify({ hostname: "127.0.0.1", port: service.port, tls })};
      for (let count = 0; count < 8; count++) await Bun.connect({ ...options, socket });
    `;
    const clients = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    try {
      for await (const _ of clients.stdout) break;
      clients.kill("SIGSTOP");
      const signalledAtMs = performance.now();
      service.signal("SIGTERM");
      expect(await service.exited).toBe(0);
      expect(performance.now() - signalledAtMs).toBeLessThan(drainMs);
    } finally {
      clients.kill("SIGKILL");
    }
  },
  120_000,
);
