/** How the client loses a stream. What it does with a real service's events is in test/client/. */
import { afterAll, expect, spyOn, test } from "bun:test";
import { PlantStore } from "./plant-store.ts";

const beginMs = 5_000;
const silenceMs = 45_000;
const { setTimeout } = globalThis;
const waitsMs = new Set<number>();
const shorten = (act: () => void, durationMs: number) => {
  waitsMs.add(durationMs);
  return setTimeout(act, durationMs > 1_000 && durationMs <= silenceMs ? 20 : durationMs);
};
const timers = spyOn(globalThis, "setTimeout").mockImplementation(shorten as typeof setTimeout);
afterAll(() => timers.mockRestore());

const event = (seq: number) => JSON.stringify({ seq, plant: { id: 7, name: "Fern", tag: "" } });
const data = (seq: number) => `data: ${event(seq)}\n\n`;

/**
 * Follows two events, and returns what was asked for. Streams never end, and send nothing once
 * there are no more of them; then the pages are `[]`.
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
  waitsMs.clear();
  const seen: number[] = [];
  for await (const { seq } of store.events({ after: 0 })) if (seen.push(seq) === 2) break;
  expect(seen).toEqual([1, 2]);
  return asked;
}

const resumed = ["page after=0", "stream after=0", "page after=1", "stream after=1"];

test("a stream that is silent for 45 seconds is lost: after a pause, it goes on", async () => {
  expect(await follow([`retry: 2000\n\nid: 1\n${data(1)}id: 2\nda`, data(2)])).toEqual(resumed);
  expect(waitsMs).toContain(silenceMs);
  expect([...waitsMs].filter((ms) => ms >= 2_000 && ms <= 3_000)).not.toBeEmpty();
});

test("a stream that leaves an event out is given up, and a page has the event", async () => {
  const asked = await follow([data(2)], ["[]", `[${event(1)},${event(2)}]`]);
  expect(asked).toEqual(["page after=0", "stream after=0", "page after=0"]);
});

test("a page of a proxy's own doesn't end it", async () => {
  expect(await follow([data(1), data(2)], ["[]", "<p>Not here"])).toEqual(resumed);
});

test("where a proxy buffers streams, pages bring the events", async () => {
  const asked = await follow([], ["[]", `[${event(1)}]`, `[${event(2)}]`]);
  expect(asked).toEqual([...resumed.slice(0, 2), "page after=0", "stream after=1", "page after=1"]);
  expect(waitsMs).toContain(beginMs);
});
