/** How the client loses a stream. What it does with a real service's events is in test/client/. */
import { afterAll, beforeEach, expect, spyOn, test } from "bun:test";
import { PlantStore } from "./plant-store.ts";

const beginMs = 5_000;
const silenceMs = 45_000;
const { setTimeout } = globalThis;
const timers = spyOn(globalThis, "setTimeout");
let waitsMs: number[] = [];
beforeEach(() => {
  waitsMs = [];
  timers.mockImplementation(((act: () => void, durationMs: number) => {
    waitsMs.push(durationMs);
    return setTimeout(act, durationMs > 1_000 && durationMs <= silenceMs ? 20 : durationMs);
  }) as typeof setTimeout);
});
afterAll(() => timers.mockRestore());

const event = (seq: number) => JSON.stringify({ seq, plant: { id: 7, name: "Fern", tag: "" } });

/**
 * Follows two events. Streams never end, and send nothing once there are no more of them; then the
 * pages are `[]`.
 */
async function follow(streams: string[], pages: string[] = []) {
  const asked: string[] = [];
  const fetch = async (url: string, { headers }: RequestInit) => {
    const isStream = new Headers(headers).get("accept") === "text/event-stream";
    asked.push(`${isStream ? "stream" : "page"} ${/after=\d+/.exec(url)}`);
    if (!isStream) {
      const page = pages.shift() ?? "[]";
      return new Response(page, { status: page.startsWith("[") ? 200 : 404 });
    }
    const text = streams.shift();
    const body = new ReadableStream({
      start: (controller) => text && controller.enqueue(new TextEncoder().encode(text)),
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const store = new PlantStore({ url: "http://localhost", token: "t", fetch });
  const seen: number[] = [];
  for await (const { seq } of store.events({ after: 0 })) if (seen.push(seq) === 2) break;
  return { seen, asked };
}

test("a stream that is silent for 45 seconds is lost: after a pause, it goes on", async () => {
  const first = `retry: 2000\n\nid: 1\ndata: ${event(1)}\n\nid: 2\nda`;
  expect(await follow([first, `data: ${event(2)}\n\n`])).toEqual({
    seen: [1, 2],
    asked: ["page after=0", "stream after=0", "page after=1", "stream after=1"],
  });
  expect(waitsMs).toContain(silenceMs);
  expect(waitsMs.filter((ms) => ms >= 2_000 && ms <= 3_000)).not.toBeEmpty();
});

test("a stream that leaves an event out is given up, and a page has the event", async () => {
  const { seen, asked } = await follow(
    [`data: ${event(2)}\n\n`],
    ["[]", `[${event(1)},${event(2)}]`],
  );
  expect([seen, asked]).toEqual([
    [1, 2],
    ["page after=0", "stream after=0", "page after=0"],
  ]);
});

test("a page of a proxy's own doesn't end it", async () => {
  const streams = [`data: ${event(1)}\n\n`, `data: ${event(2)}\n\n`];
  expect(await follow(streams, ["[]", "<p>Not here"])).toEqual({
    seen: [1, 2],
    asked: ["page after=0", "stream after=0", "page after=1", "stream after=1"],
  });
});

test("where a proxy buffers streams, pages bring the events", async () => {
  expect(await follow([], ["[]", `[${event(1)}]`, `[${event(2)}]`])).toEqual({
    seen: [1, 2],
    asked: ["page after=0", "stream after=0", "page after=0", "stream after=1", "page after=1"],
  });
  expect(waitsMs).toContain(beginMs);
});
