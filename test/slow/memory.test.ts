/** What the service promises of its memory: long lists and odd bodies take little. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { sampleProcess } from "../../proofs/process-growth.ts";
import { type RunningService, startService, waitFor } from "../end-to-end/running-service.ts";
import { skipsOutsideLinux } from "../skipping.ts";

// As text they take 70 MB, and more as objects.
test("300,000 long plants go out in little memory, to fast and slow clients and to one that leaves", async () => {
  const plants = 300_000;
  const growthBytesMax = 50_000_000;
  await using service = await startService();
  using file = new Database(service.database);
  file.run(
    `INSERT INTO plants (garden, id, name, tag)
       WITH RECURSIVE number (id) AS
         (SELECT 1 UNION ALL SELECT id + 1 FROM number WHERE id < ${plants})
       SELECT 'gardener', id, printf('%0200d', id), '' FROM number`,
  );
  await service.call("GET /plants?limit=500");
  const beforeBytes = residentBytes(service);
  let peakBytes = 0;
  let chunks = 0;
  let last = Buffer.alloc(0);
  let bytes = 0;
  const response = await service.call("GET /plants");
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    last = Buffer.concat([last, chunk]).subarray(-40);
    // The first part is read slowly: the service must wait rather than pile up.
    if (chunks++ < 20) await Bun.sleep(20);
    peakBytes = Math.max(peakBytes, residentBytes(service));
  }
  const itemBytes = '{"name":"","tag":""},'.length + 200;
  expect(bytes).toBe(plants * itemBytes + 1);
  expect(last.toString()).toEndWith(`${plants}","tag":""}]`);

  const leaving = new AbortController();
  const left = await service.call("GET /plants", { signal: leaving.signal });
  await left.body?.getReader().read();
  leaving.abort();
  // The log line of a request comes when its stream has ended, even because the client left.
  await waitFor(() => service.output().out.split('"route":"/plants"').length > 3 || undefined);
  peakBytes = Math.max(peakBytes, residentBytes(service));
  expect(peakBytes - beforeBytes).toBeLessThan(growthBytesMax);
}, 120_000);

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
    const send = async (): Promise<string> => {
      const socket = connect(service.port, "127.0.0.1");
      socket.write(`${head}\r\n\r\n${chunks}0\r\n\r\n`);
      const answer = await text(socket);
      // As a busy machine may.
      return answer.startsWith("HTTP/1.1 503") ? send() : answer;
    };
    const answers = await Promise.all(Array.from({ length: 30 }, send)).finally(() => {
      clearInterval(watching);
    });
    // A busy machine may refuse some of them.
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1.1 (?:201|503)/);
    expect(answers.join("")).toContain("HTTP/1.1 201");
    expect(mostBytes - beforeBytes).toBeLessThan(80_000_000);
  },
  120_000,
);

function residentBytes({ pid }: RunningService): number {
  return sampleProcess(pid).residentMb * 2 ** 20;
}
