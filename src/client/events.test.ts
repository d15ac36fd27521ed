/** How long the client waits for a stream. What it does with events is in test/client/. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { PlantStore } from "./plant-store.ts";

const { setTimeout } = globalThis;
const timers = spyOn(globalThis, "setTimeout");
afterEach(() => timers.mockRestore());

const silenceMs = 45_000;
const event = (seq: number) => JSON.stringify({ seq, plant: { id: 7, name: "Fern", tag: "" } });

test("a stream that is silent for 45 seconds is lost: after the time in retry, it goes on", async () => {
  const waitsMs: number[] = [];
  timers.mockImplementation(((act: () => void, durationMs: number) => {
    waitsMs.push(durationMs);
    return setTimeout(act, durationMs > 1_000 && durationMs <= silenceMs ? 20 : durationMs);
  }) as typeof setTimeout);
  const streams = [
    `retry: 5000\n\nid: 1\ndata: ${event(1)}\n\nid: 2\nda`,
    `retry: 5000\n\ndata: ${event(2)}\n\n`,
  ];
  const asked: string[] = [];
  const fetch = async (url: string, { headers }: RequestInit) => {
    const isStream = new Headers(headers).get("accept") === "text/event-stream";
    asked.push(`${isStream ? "stream" : "page"} ${url.split("?")[1]}`);
    if (!isStream) return new Response("[]");
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode(streams.shift())),
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const store = new PlantStore({ url: "http://localhost", token: "t", fetch });
  const seen: number[] = [];
  for await (const { seq } of store.events({ after: 0 })) if (seen.push(seq) === 2) break;
  expect(seen).toEqual([1, 2]);
  expect(asked).toEqual([
    ...["page limit=1000&after=0", "stream after=0"],
    ...["page limit=1000&after=1", "stream after=1"],
  ]);
  expect(waitsMs).toContain(silenceMs);
  expect(waitsMs.filter((ms) => ms > 5_000 && ms <= 7_500)).toHaveLength(1);
});
