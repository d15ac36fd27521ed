/** Bulk requests that are refused line by line hold nobody up. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { startService } from "../../end-to-end/running-service.ts";
import { skipsOutsideLinux } from "../../skipping.ts";
import { busyKinds } from "./busy-bulks.ts";
import { makeToken, useService } from "./slow-attack.ts";

/** The thread was blocked for 0.6 to 1.7 s. Now it computes for 60 ms at most. */
const busyMsMax = 200;

test.skipIf(skipsOutsideLinux()).each(busyKinds)(
  "others are served while 8 connections send %s",
  async (kind) => {
    await using service = await startService();
    const hog = await makeToken(service, "hog");
    const other = await makeToken(service, "other");
    await useService(service, other, 500);
    const script = join(import.meta.dir, "busy-bulks.ts");
    await using _clients = Bun.spawn([process.execPath, script, `${service.port}`, kind, "8"], {
      env: { ...process.env, TOKEN: hog },
    });
    await Bun.sleep(500);
    const impact = await useService(service, other, 3_000);
    expect(impact.faults).toEqual([]);
    expect(impact.busyMsMax).toBeLessThan(busyMsMax);
  },
  { timeout: 120_000, retry: 2 },
);
