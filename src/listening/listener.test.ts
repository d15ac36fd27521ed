/** What stands for a port: nobody else gets it, and nobody holds anything of this process by it. */
import { expect, test } from "bun:test";
import { claimPort, type ListenerConfig } from "./listener.ts";

test.if(process.platform === "linux")("the name of a port holds no connections", async () => {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = probe;
  probe.stop(true);
  claimPort({ host: "127.0.0.1", port } as ListenerConfig);
  const closed = Promise.withResolvers<string>();
  await Bun.connect({
    unix: `\0plantstore-127.0.0.1-${port}`,
    socket: { data() {}, close: () => closed.resolve("closed") },
  });
  // One that were held would be waited for until the test is given up.
  expect(await closed.promise).toBe("closed");
});
