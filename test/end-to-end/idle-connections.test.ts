/** Clients that hold connections and do not look at them, as pools of connections do. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { startService } from "./running-service.ts";

const certificates = join(import.meta.dir, "../certificates");
const pair = ["--tls-cert", "server.pem", "--tls-key", "server-key.pem"];
const flags = pair.map((each) => (each.endsWith(".pem") ? join(certificates, each) : each));

test.each([
  ["HTTP", []],
  ["TLS", flags],
])("a stop does not wait for idle connections over %s that nobody looks at", async (_, args) => {
  await using service = await startService({ args: ["--threads", "2", ...args] });
  const tls = args.length > 0 ? { rejectUnauthorized: false } : false;
  const script = `
    const request = "GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n";
    let answers = 0;
    function data() {
      if (++answers === 8) process.stdout.write("answered");
    }
    const socket = { open: (each) => each.write(request), data };
    const options = ${JSON.stringify({ hostname: "127.0.0.1", port: service.port, tls })};
    for (let count = 0; count < 8; count++) await Bun.connect({ ...options, socket });
  `;
  const clients = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  try {
    for await (const _ of clients.stdout) break;
    clients.kill("SIGSTOP");
    const toldAtMs = performance.now();
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
    expect(performance.now() - toldAtMs).toBeLessThan(5_000);
  } finally {
    clients.kill("SIGKILL");
  }
});
