/** Bulk requests that are refused line by line hold nobody up. */
import { expect, test } from "bun:test";
import { makeToken, startService } from "../../end-to-end/running-service.ts";
import { skipsOutsideLinux } from "../../skipping.ts";
import { KeptConnection, writeRequest } from "../kept-connection.ts";
import { useService } from "./slow-attack.ts";

/** The thread was blocked for 0.6 to 1.7 s. Now it computes for 60 ms at most. */
const busyMsMax = 200;
const connectionsCount = 8;

const bodies = {
  "empty lines": "\n".repeat(10_000),
  "unknown fields": `{${Array.from({ length: 8 }, (_, index) => `"${index}":1`)}}\n`.repeat(10_000),
  "one long line": `{"name":"${"x".repeat(1_000_000)}"}`,
};

test.skipIf(skipsOutsideLinux()).each(Object.entries(bodies))(
  "others are served while 8 connections send %s",
  async (_, body) => {
    await using service = await startService();
    const token = await makeToken(service, "hog");
    const other = await makeToken(service, "other");
    await useService(service, other, 500);
    const headers = { "Content-Type": "application/jsonl" };
    const request = writeRequest("POST /plants/bulk", { token, headers, body });
    let isOver = false;
    const clients = Array.from({ length: connectionsCount }, async () => {
      const connection = await KeptConnection.open({ port: service.port, isSecure: false });
      while (!isOver) await connection.ask(request);
      connection.close();
    });
    await Bun.sleep(500);
    const impact = await useService(service, other, 3_000);
    isOver = true;
    await Promise.all(clients);
    expect(impact.faults).toEqual([]);
    expect(impact.busyMsMax).toBeLessThan(busyMsMax);
  },
  { timeout: 120_000, retry: 2 },
);
