/** The sockets of the service: their names. */
import { expect, test } from "bun:test";
import { skipsOutsideLinux } from "../skipping.ts";
import { startService } from "./running-service.ts";

test.skipIf(skipsOutsideLinux())("takes no name that another user could take", async () => {
  await using service = await startService();
  expect(await Bun.file("/proc/net/unix").text()).not.toContain(`-${service.port}`);
});
