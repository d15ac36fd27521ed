/** Streams of events from the real program: over sockets, on two threads, and when it stops. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { makePlace } from "../../proofs/audited-store.ts";
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

test("streams on all threads get every event, and end when the service stops", async () => {
  await using service = await startService({ args: ["--threads", "2"] });
  await waitForThreads(service, 2);
  const open = () => service.call("GET /events", { headers });
  const readers = await Promise.all(Array.from({ length: 20 }, open)).then((responses) =>
    responses.map((response) => new EventStreamReader(response)),
  );
  for (const name of ["Fern", "Ivy"]) {
    await service.call("POST /plants", { body: JSON.stringify({ name }) });
  }
  for (const reader of readers) {
    expect((await reader.take(2)).map(({ id }) => id)).toEqual([1, 2]);
  }
  service.signal("SIGTERM");
  for (const reader of readers) expect(await reader.next()).toBeUndefined();
  expect(await service.exited).toBe(0);
});

test("a token has 64 streams on a thread, which end when it is revoked", async () => {
  await using service = await startService({ args: ["--threads", "1"] });
  const token = await makeToken(service, "ann");
  const open = () => service.call("GET /events", { headers, token });
  const responses = await Promise.all(Array.from({ length: 70 }, open));
  const opened = responses.filter(({ status }) => status === 200);
  expect([opened.length, responses.filter(({ status }) => status === 429).length]).toEqual([64, 6]);
  await waitFor(async () => ((await readMetric(service, "listeners")) === 64 ? true : undefined));
  await revokeToken(service, "ann");
  for (const response of opened) {
    expect(await new EventStreamReader(response).next()).toBeUndefined();
  }
  await waitFor(async () => ((await readMetric(service, "listeners")) === 0 ? true : undefined));
});

test.each(["sqlite", "postgres"] as const)(
  "on %s, a listener that never reads is cut off if it lags, is revoked, or the service stops",
  async (engine) => {
    await using place = await makePlace(engine);
    await using service = await startService({ database: place.database });
    const token = await makeToken(service, "ann");
    const behind = await openUnread(service, token);
    await writeMuch(service, token);
    await waitForDisconnect(service, behind);

    // From the first event on, it never gets to the live ones, so it can't fall behind.
    const revoked = await openStuck(service, token);
    await revokeToken(service, "ann");
    await waitForDisconnect(service, revoked);

    const last = await openStuck(service, await makeToken(service, "bob", "--garden", "ann"));
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
    last.destroy();
  },
);

test("a stop waits for a request under way, even if a listener never reads", async () => {
  await using service = await startService({ args: ["--threads", "1"] });
  const { port, token } = service;
  await writeMuch(service, token);
  const socket = await openStuck(service, token);
  const slow = connect(port, "127.0.0.1");
  slow.write(
    `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
      "Content-Type: application/json\r\nContent-Length: 15\r\nExpect: 100-continue\r\n\r\n",
  );
  expect(String(await once(slow, "data"))).toStartWith("HTTP/1.1 100 ");
  service.signal("SIGTERM");
  await waitFor(() => service.output().out.includes('"event":"stopping"') || undefined);
  slow.write('{"name":"Fern"}');
  expect(String(await once(slow, "data"))).toStartWith("HTTP/1.1 201 ");
  expect(await service.exited).toBe(0);
  socket.destroy();
});

/** Opens a stream and reads nothing after its first bytes. */
async function openUnread(service: RunningService, token: string, after?: number): Promise<Socket> {
  const socket = connect(service.port, "127.0.0.1");
  const query = after === undefined ? "" : `?after=${after}`;
  socket.write(
    `GET /events${query} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n` +
      `Authorization: Bearer ${token}\r\n\r\n`,
  );
  await once(socket, "data");
  socket.pause();
  return socket;
}

/** Makes more events than the buffers of both sockets hold. */
async function writeMuch(service: RunningService, token: string): Promise<void> {
  const plants = Array(2_500).fill({ name: "n".repeat(200), tag: "t".repeat(100) });
  for (let count = 0; count < 8; count++) {
    const response = await service.call("POST /plants/bulk", {
      body: JSON.stringify(plants),
      token,
    });
    expect(response.status).toBe(200);
  }
}

/** Opens a stream of all events, and waits until no more of them can be sent. */
async function openStuck(service: RunningService, token: string): Promise<Socket> {
  const readSent = () => readMetric(service, "sent_events_total");
  const sentBefore = await readSent();
  const socket = await openUnread(service, token, 0);
  let sent = sentBefore;
  await waitFor(async () => {
    const last = sent;
    await Bun.sleep(500);
    sent = await readSent();
    return (sent === last && sent > sentBefore) || undefined;
  });
  expect(sent - sentBefore).toBeLessThan(20_000);
  return socket;
}

async function waitForDisconnect(service: RunningService, socket: Socket): Promise<void> {
  await waitFor(async () => (await readMetric(service, "listeners")) === 0 || undefined);
  socket.resume();
  await once(socket, "close");
}

async function revokeToken(service: RunningService, user: string): Promise<void> {
  const variables = { PLANTSTORE_DATABASE: service.database };
  const list = await runProgram(["token", "list"], variables);
  const id = new RegExp(`^(\\S+).*\\b${user}\\b`, "m").exec(list.out)?.[1] ?? "";
  await runProgram(["token", "revoke", id], variables);
}

async function readMetric(service: RunningService, name: string): Promise<number> {
  const metrics = await (await service.call("GET /metrics")).text();
  return Number(new RegExp(`^plantstore_${name} (\\d+)$`, "m").exec(metrics)?.[1]);
}
