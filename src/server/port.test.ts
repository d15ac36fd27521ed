/** The end of a port: it must not wait for a timer while requests arrive without end. */
import { expect, spyOn, test } from "bun:test";
import { listen } from "./port.ts";

test("the time to close passes with requests, even if no timer fires", async () => {
  const app = { openPaths: [], fetch: async () => new Response("") };
  const server = listen({ host: "127.0.0.1", port: 0, threads: 1, certificate: undefined }, app);
  const timers = spyOn(globalThis, "setTimeout").mockImplementation((() => 0) as never);
  let isOver = false;
  server.closeAfterResponses().then(() => {
    isOver = true;
  });
  while (!isOver) {
    const { headers } = await fetch(`http://127.0.0.1:${server.port}/`);
    expect(headers.get("connection")).toBe("close");
  }
  timers.mockRestore();
  await server.stop(true);
});
