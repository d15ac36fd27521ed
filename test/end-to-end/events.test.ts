/** Streams of events over sockets: on two threads, when nobody reads them, and at a stop. */
import { expect, spyOn, test } from "bun:test";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { KeptConnection, writeRequest } from "../../proofs/kept-connection.ts";
import { EventStreamReader } from "../event-reader.ts";
import { insist, readMetric, serveHere, waitFor, waitForThreads } from "./running-service.ts";

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

test("a listener that never reads is cut off when it lags, and a stop doesn't wait for it", async () => {
  const serving = spyOn(Bun, "serve");
  await using service = await serveHere();
  // Otherwise it would be there until the runtime's own time limit.
  const server = serving.mock.results.at(-1)?.value as { timeout(): void };
  const disconnecting = spyOn(server, "timeout");
  serving.mockRestore();
  const behind = await openUnread(service);
  await writeMuch(service);
  await waitFor(async () => (await readMetric(service, "listeners")) === 0 || undefined);
  await once(behind.resume(), "close");
  expect(disconnecting).toHaveBeenCalledTimes(1);

  // From the first event on, it never gets to the live ones, so it can't fall behind.
  const last = await openUnread(service, "?after=0");
  const slow = await KeptConnection.open(service);
  const request = writeRequest("POST /plants", { token: service.token, body: '{"name":"Fern"}' });
  slow.sendPart(request.slice(0, -5));
  // Once others have their responses, it has begun.
  for (let count = 0; count < 3; count++) await service.call("GET /plants?limit=1");
  const stopping = service.stop();
  expect((await slow.ask(request.slice(-5))).status).toBe(201);
  await stopping;
  last.destroy();
  expect(service.readLog("stopped before all work was finished")).toEqual([]);
});

/** Opens a stream and reads nothing after its first bytes. */
async function openUnread({ port, token }: Service, query = ""): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.write(
    writeRequest(`GET /events${query}`, { token, headers: { Accept: "text/event-stream" } }),
  );
  await once(socket, "data");
  return socket.pause();
}

/** Makes more events than the buffers of both sockets hold. */
async function writeMuch(service: Service): Promise<void> {
  const body = JSON.stringify(Array(2_500).fill({ name: "n".repeat(200), tag: "t".repeat(100) }));
  for (let count = 0; count < 8; count++) {
    const response = await insist(() => service.call("POST /plants/bulk", { body }));
    expect(response.status).toBe(200);
  }
}
