/** Streams of events from the real program: over sockets, on two threads, and when it stops. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import { EventStreamReader } from "../event-reader.ts";
import {
  makeToken,
  type RunningService,
  runProgram,
  startService,
  waitFor,
  waitForThreads,
} from "./running-service.ts";

setDefaultTimeout(120_000);

const headers = { accept: "text/event-stream", connection: "close" };

test("streams on all threads get every event, and end at once when the service stops", async () => {
  await using service = await startService({ args: ["--threads", "2"] });
  await waitForThreads(service, 2);
  const open = () => service.call("GET /events", { headers });
  const readers = await Promise.all(Array.from({ length: 20 }, open)).then((responses) =>
    responses.map((response) => new EventStreamReader(response)),
  );
  // One that never reads.
  const { port, token } = service;
  const silent = connect(port, "127.0.0.1").pause();
  silent.write(
    `GET /events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  );
  for (const name of ["Fern", "Ivy"]) {
    await service.call("POST /plants", { body: JSON.stringify({ name }) });
  }
  for (const reader of readers) {
    expect((await reader.take(2)).map(({ id }) => id)).toEqual([1, 2]);
  }
  const stoppedAtMs = performance.now();
  service.signal("SIGTERM");
  for (const reader of readers) expect(await reader.next()).toBeUndefined();
  expect(await service.exited).toBe(0);
  expect(performance.now() - stoppedAtMs).toBeLessThan(5_000);
  silent.destroy();
});

test("a token has 64 streams on all threads together, which end when it is revoked", async () => {
  await using service = await startService({ args: ["--threads", "2"] });
  await waitForThreads(service, 2);
  const token = await makeToken(service, "ann");
  const open = () => service.call("GET /events", { headers, token });
  const responses = await Promise.all(Array.from({ length: 70 }, open));
  const opened = responses.filter(({ status }) => status === 200);
  expect([opened.length, responses.filter(({ status }) => status === 429).length]).toEqual([64, 6]);
  await waitFor(async () => ((await countListeners(service)) === 64 ? true : undefined));
  const list = await runProgram(["token", "list", "--database", service.database]);
  const id = /^(\S+).*\bann\b/m.exec(list.out)?.[1] ?? "";
  await runProgram(["token", "revoke", id, "--database", service.database]);
  const revokedAtMs = performance.now();
  for (const response of opened) {
    expect(await new EventStreamReader(response).next()).toBeUndefined();
  }
  expect(performance.now() - revokedAtMs).toBeLessThan(5_000);
  await waitFor(async () => ((await countListeners(service)) === 0 ? true : undefined));
});

async function countListeners(service: RunningService): Promise<number> {
  const metrics = await (await service.call("GET /metrics")).text();
  return Number(/^plantstore_listeners (\d+)$/m.exec(metrics)?.[1]);
}
