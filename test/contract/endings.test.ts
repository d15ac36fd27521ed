/** How requests end: each is counted and logged once, however it ends. */
import { beforeEach, expect, test } from "bun:test";
import { waitFor } from "../../testing/running-service.ts";
import { openGarden } from "./garden.ts";

const { call, anonymous, reader, fetch, plant, service } = openGarden("SQLite");

const stream = { Accept: "text/event-stream" };

/** Sends each kind of request. */
const requests: Readonly<Record<string, () => Promise<unknown>>> = {
  "a page": () => call("GET /plants?limit=1", 200),
  "a plant": () => call("GET /plants/7", 200),
  "a long list": () => call("GET /plants", 200),
  "the head of a long list": () => call("HEAD /plants", 200),
  "a long list whose client leaves at once": async () => {
    const response = await fetch("GET /plants");
    await response.body?.cancel();
  },
  "a long list whose client leaves after the first chunk": async () => {
    const response = await fetch("GET /plants");
    const chunks = response.body?.getReader();
    await chunks?.read();
    await chunks?.cancel();
  },
  "a stream of events": () => call("GET /events", 200, undefined, stream),
  "the head of a stream of events": () => call("HEAD /events", 200, undefined, stream),
  "a bulk": () => call("POST /plants/bulk", 200, Array(100).fill({ name: "Fern" })),
  "a preflight request": () => call("OPTIONS /plants", 204),
  "an invalid body": () => call("POST /plants", 400, "{"),
  "a body that is too large": () => call("POST /plants", 413, { name: "x".repeat(70_000) }),
  "a request without a token": () => anonymous("POST /plants", 401, { name: "Fern" }),
  "a write with a read-only token": () => reader("POST /plants", 403, { name: "Fern" }),
  "a request to an unknown path": () => call("GET /nothing", 404),
  "a request with a method that the path lacks": () => call("PUT /plants", 405),
  "a create with an id that is taken": () => call("POST /plants", 409, { name: "Fern", id: 1 }),
};

/** How many requests the metrics have counted, of all operations and statuses. */
async function countMetered(): Promise<number> {
  const { text } = await anonymous("GET /metrics", 200);
  const counts = text.matchAll(/^plantstore_requests_total\{.*\} (\d+)$/gm);
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** How many requests the log has lines for. Requests for metrics have none. */
function countLogged(): number {
  return service.readLog().match(/"event":"request"/g)?.length ?? 0;
}

beforeEach(async () => {
  const longEnoughForStreams = 3_000;
  await plant(Array.from({ length: longEnoughForStreams }, () => ({ name: "x".repeat(100) })));
});

test.each(Object.entries(requests))("%s is counted and logged once", async (_, send) => {
  const meteredBefore = await countMetered();
  const loggedBefore = countLogged();

  await send();
  await waitFor(() => countLogged() > loggedBefore || undefined);

  // The first look at the metrics was a request, too.
  expect(await countMetered()).toBe(meteredBefore + 2);
  expect(countLogged()).toBe(loggedBefore + 1);
});
