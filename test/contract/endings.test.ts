/** How requests end: each is counted and logged once, whatever becomes of it. */
import { expect, test } from "bun:test";
import { waitFor } from "../../testing/running-service.ts";
import { openGarden } from "./garden.ts";

const { call, anonymous, reader, fetch, plant, service } = openGarden("SQLite");
const fern = { name: "Fern" };
const stream = { Accept: "text/event-stream" };

const requests: Readonly<Record<string, () => Promise<unknown>>> = {
  "a page": () => call("GET /plants?limit=1", 200),
  "a plant": () => call("GET /plants/7", 200),
  "a long list": () => call("GET /plants", 200),
  "the head of a long list": () => call("HEAD /plants", 200),
  "a long list whose client leaves": async () => (await fetch("GET /plants")).body?.cancel(),
  "a long list whose client leaves later": async () => {
    const chunks = (await fetch("GET /plants")).body?.getReader();
    await chunks?.read();
    await chunks?.cancel();
  },
  "a stream of events": () => call("GET /events", 200, undefined, stream),
  "the head of a stream of events": () => call("HEAD /events", 200, undefined, stream),
  "a bulk": () => call("POST /plants/bulk", 200, Array(100).fill(fern)),
  "a preflight request": () => call("OPTIONS /plants", 204),
  "an invalid body": () => call("POST /plants", 400, "{"),
  "a body that is too large": () => call("POST /plants", 413, { name: "x".repeat(70_000) }),
  "no token": () => anonymous("POST /plants", 401, fern),
  "a token that may only read": () => reader("POST /plants", 403, fern),
  "no such path": () => call("GET /nothing", 404),
  "no such method": () => call("PUT /plants", 405),
  "a conflict": () => call("POST /plants", 409, { ...fern, id: 1 }),
};

const countLines = () => service.readLog().match(/"event":"request"/g)?.length ?? 0;

/** Of all operations and statuses. */
async function countRequests(): Promise<number> {
  const { text } = await anonymous("GET /metrics", 200);
  const counts = text.matchAll(/^plantstore_requests_total\{.*\} (\d+)$/gm);
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

test.each(Object.entries(requests))("%s is counted and logged once", async (_, send) => {
  await plant(Array.from({ length: 3_000 }, () => ({ name: "x".repeat(100) })));
  const [counted, logged] = [await countRequests(), countLines()];
  await send();
  await waitFor(() => countLines() > logged || undefined);
  // The look at the metrics before counts, too.
  expect([await countRequests(), countLines()]).toEqual([counted + 2, logged + 1]);
});
