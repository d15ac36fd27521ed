/** Streams of events over sockets: on two threads, when nobody reads them, and at a stop. */
import { expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { KeptConnection, writeRequest } from "../../proofs/kept-connection.ts";
import { EventStreamReader } from "../event-reader.ts";
import {
  insist,
  makeToken,
  readMetric,
  revokeTokens,
  serveHere,
  waitFor,
  waitForThreads,
} from "./running-service.ts";

setDefaultTimeout(120_000);

type Service = Awaited<ReturnType<typeof serveHere>>;

test("streams on all threads get every event, and end when the service stops", async () => {
  await using service = await serveHere({ threads: "2" });
  await waitForThreads(service, 2);
  const headers = { accept: "text/event-stream", connection: "close" };
  const open = async () =>
    new EventStreamReader(await insist(() => service.call("GET /events", { headers })));
  const readers = await Promise.all(Array.from({ length: 20 }, open));
  for (const name of ["Fern", "Ivy"]) {
    await insist(() => service.call("POST /plants", { body: JSON.stringify({ name }) }));
  }
  for (const reader of readers) {
    expect((await reader.take(2)).map(({ id }) => id)).toEqual([1, 2]);
  }
  const stopping = service.stop();
  for (const reader of readers) expect(await reader.next()).toBeUndefined();
  await stopping;
});

test("a listener that never reads is cut off if it lags or is revoked, and a stop waits for requests alone", async () => {
  const serving = spyOn(Bun, "serve");
  await using service = await serveHere();
  // Otherwise they would be there until the runtime's own time limit.
  const server = serving.mock.results.at(-1)?.value as { timeout(): void };
  const disconnecting = spyOn(server, "timeout");
  serving.mockRestore();
  const token = await makeToken(service, "ann");
  const behind = await openUnread(service, token);
  await writeMuch(service, token);
  await waitForDisconnect(service, behind);

  // From the first event on, it never gets to the live ones, so it can't fall behind.
  const revoked = await openStuck(service, token);
  await revokeTokens(service, "ann");
  await waitForDisconnect(service, revoked);
  expect(disconnecting).toHaveBeenCalledTimes(2);

  const last = await openStuck(service, await makeToken(service, "bob", "--garden", "ann"));
  const slow = await KeptConnection.open(service);
  const request = writeRequest("POST /plants", { token: service.token, body: '{"name":"Fern"}' });
  slow.sendPart(request.slice(0, -5));
  // Once others have their responses, it has begun.
  for (let count = 0; count < 3; count++) await service.call("GET /plants");
  let hasStopped = false;
  const stopping = service.stop().then(() => {
    hasStopped = true;
  });
  // Longer than a stop waits for listeners. On a slow machine it proves less, and never fails.
  await Bun.sleep(1_500);
  expect(hasStopped).toBe(false);
  expect((await slow.ask(request.slice(-5))).status).toBe(201);
  await stopping;
  last.destroy();
  expect(service.readLog("stopped before all work was finished")).toEqual([]);
});

/** Opens a stream and reads nothing after its first bytes. */
async function openUnread(service: Service, token: string, after?: number): Promise<Socket> {
  const socket = connect(service.port, "127.0.0.1");
  const query = after === undefined ? "" : `?after=${after}`;
  socket.write(
    writeRequest(`GET /events${query}`, { token, headers: { Accept: "text/event-stream" } }),
  );
  await once(socket, "data");
  return socket.pause();
}

/** Makes more events than the buffers of both sockets hold. */
async function writeMuch(service: Service, token: string): Promise<void> {
  const body = JSON.stringify(Array(2_500).fill({ name: "n".repeat(200), tag: "t".repeat(100) }));
  for (let count = 0; count < 8; count++) {
    const response = await insist(() => service.call("POST /plants/bulk", { body, token }));
    expect(response.status).toBe(200);
  }
}

/** Opens a stream of all events, and waits until no more of them can be sent. */
async function openStuck(service: Service, token: string): Promise<Socket> {
  const sentBefore = await readMetric(service, "sent_events_total");
  const socket = await openUnread(service, token, 0);
  const counts: number[] = [];
  const sent = await waitFor(async () => {
    counts.push(await readMetric(service, "sent_events_total"));
    const isStill = new Set(counts.slice(-5)).size === 1 && counts.length > 5;
    return isStill && counts.at(-1) !== sentBefore ? counts.at(-1) : undefined;
  });
  expect((sent ?? 0) - sentBefore).toBeLessThan(20_000);
  return socket;
}

async function waitForDisconnect(service: Service, socket: Socket): Promise<void> {
  await waitFor(async () => (await readMetric(service, "listeners")) === 0 || undefined);
  await once(socket.resume(), "close");
}
