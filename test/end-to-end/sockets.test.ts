/** The sockets of the service: their names, and when there are no more of them. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { skipsOutsideLinux, skipsWithout } from "../skipping.ts";
import { startService } from "./running-service.ts";

test.skipIf(skipsOutsideLinux())("takes no name that another user could take", async () => {
  await using service = await startService();
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
