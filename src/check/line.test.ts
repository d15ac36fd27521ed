/** The way to a service that limits the rate. */
import { expect, test } from "bun:test";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { Interrupted, Line } from "./line.ts";

test("waits no longer once the check is told to stop", async () => {
  using server = Bun.serve({
    port: 0,
    fetch: () => new Response("", { status: 429, headers: { "Retry-After": "50" } }),
  });
  const stopping = new AbortController();
  const line = new Line(server.url.origin, 5_000, stopping.signal);
  const sending = line.send("GET /plants").catch((error) => error);
  await waitFor(() => line.waitedSeconds || undefined);
  stopping.abort();
  expect(await sending).toBeInstanceOf(Interrupted);
});

test("does not begin to wait when it was told to stop while the answer was on its way", async () => {
  const stopping = new AbortController();
  using server = Bun.serve({
    port: 0,
    fetch() {
      stopping.abort();
      return new Response("", { status: 429, headers: { "Retry-After": "50" } });
    },
  });
  const line = new Line(server.url.origin, 5_000, stopping.signal);
  expect(await line.send("GET /plants").catch((error) => error)).toBeInstanceOf(Interrupted);
});
