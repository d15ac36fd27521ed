/**
 * What the service promises under load: grouped and durable writes, lists of any length in little
 * memory.
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";
import { sampleProcess } from "../reliability/process-growth.ts";
import { skipsOutsideLinux } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { type RunningService, startService, waitFor } from "./running-service.ts";

describe("a million plants listed without a limit", () => {
  const plants = 1_000_000;
  const growthBytesMax = 50_000_000;

  test("go out whole in little memory, to fast and slow clients and to one that leaves", async () => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "plants.db");
    await using service = await startService({ database });
    seed(database, plants);
    await service.call("GET /plants?limit=500");
    const before = residentBytes(service);

    const response = await service.call("GET /plants?fields=id");
    let bytes = 0;
    let commas = 0;
    let chunks = 0;
    let peak = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength;
      for (const byte of chunk) if (byte === 44) commas++;
      // The first part is read slowly: the service must wait rather than pile up.
      if (chunks++ < 20) await Bun.sleep(20);
      peak = Math.max(peak, residentBytes(service));
    }
    expect(commas).toBe(plants - 1);
    expect(bytes).toBeGreaterThan(plants * '{"id":1}'.length);
    expect(peak - before).toBeLessThan(growthBytesMax);

    const head = await service.call("HEAD /plants");
    expect([head.status, head.headers.get("content-length")]).toEqual([200, null]);

    await leaveMidway(service);
    expect(residentBytes(service) - before).toBeLessThan(growthBytesMax);
  }, 120_000);

  async function leaveMidway(service: RunningService): Promise<void> {
    const leaving = new AbortController();
    const response = await service.call("GET /plants", { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    // The one log line of the request comes when the stream has ended, also by the client's
    // leaving.
    await waitFor(() => {
      const lines = service.output().out.split("\n");
      return lines.filter((line) => line.includes('"route":"/plants"')).length >= 4 || undefined;
    });
  }

  function seed(database: string, count: number): void {
    const file = new Database(database);
    file.run(
      `INSERT INTO plants (garden, id, name, tag)
         WITH RECURSIVE number (id) AS
           (SELECT 1 UNION ALL SELECT id + 1 FROM number WHERE id < ${count})
         SELECT 'gardener', id, 'Plant ' || id, 'seeded' FROM number`,
    );
    file.close();
  }
});

// Each chunk as an object of its own took 7 MB for a body, and 130 ms of the event loop.
test.skipIf(skipsOutsideLinux())(
  "30 bodies of 60,000 chunks of one byte each take little memory",
  async () => {
    await using service = await startService({ args: ["--threads", "1"] });
    const head = [
      "POST /plants HTTP/1.1",
      "Host: a",
      `Authorization: Bearer ${service.token}`,
      "Content-Type: application/json",
      "Transfer-Encoding: chunked",
      "Connection: close",
    ].join("\r\n");
    const body = '{"name":"Fern"}'.padEnd(60_000);
    const chunks = Array.from(body, (byte) => `1\r\n${byte}\r\n`).join("");
    const beforeBytes = residentBytes(service);
    let mostBytes = beforeBytes;
    const watching = setInterval(() => {
      mostBytes = Math.max(mostBytes, residentBytes(service));
    }, 20);
    const send = () =>
      new Promise<string>((resolve, reject) => {
        let answer = "";
        const socket = connect(service.port, "127.0.0.1", () => {
          socket.write(`${head}\r\n\r\n${chunks}0\r\n\r\n`);
        });
        socket.on("data", (bytes) => {
          answer += bytes;
        });
        socket.on("close", () => resolve(answer));
        socket.on("error", reject);
      });
    const answers = await Promise.all(Array.from({ length: 30 }, send)).finally(() => {
      clearInterval(watching);
    });
    for (const answer of answers) expect(answer).toStartWith("HTTP/1.1 201");
    expect(mostBytes - beforeBytes).toBeLessThan(80_000_000);
  },
  120_000,
);

function residentBytes({ pid }: RunningService): number {
  return sampleProcess(pid).residentMb * 2 ** 20;
}
