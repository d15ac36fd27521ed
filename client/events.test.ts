/** How the client loses a stream. What it does with a real service's events is in test/client/. */
import { afterAll, beforeEach, expect, spyOn, test } from "bun:test";
import { PlantStore } from "./plant-store.ts";

/** How long the client waits for the first byte of a stream. */
const beginMs = 5_000;
/** How long it waits for the next bytes. */
const silenceMs = 45_000;

/** The durations of all timers that were set. Those of more than a second end soon. */
let timersMs: number[] = [];
const { setTimeout } = globalThis;
const shorten = (act: () => void, durationMs: number) => {
  timersMs.push(durationMs);
  const isLong = durationMs > 1_000 && durationMs <= silenceMs;
  return setTimeout(act, isLong ? 20 : durationMs);
};
const timers = spyOn(globalThis, "setTimeout").mockImplementation(shorten as typeof setTimeout);
beforeEach(() => {
  timersMs = [];
});
afterAll(() => timers.mockRestore());

/** The JSON of an event. */
function renderEvent(seq: number): string {
  return JSON.stringify({ seq, plant: { id: 7, name: "Fern", tag: "" } });
}

interface Script {
  /** What each stream sends before it falls silent; later ones send nothing. None of them ends. */
  readonly streams: readonly string[];
  /** The body of each page of events; later ones are `[]`. A body that isn't an array is a 404. */
  readonly pages?: readonly string[];
}

/** Follows two events. Returns their numbers, and the requests for pages and streams. */
async function followTwoEvents(script: Script) {
  const streams = [...script.streams];
  const pages = [...(script.pages ?? [])];
  const requests: string[] = [];
  const fetch = async (url: string, { headers }: RequestInit) => {
    const [after] = /after=\d+/.exec(url) ?? [];
    if (new Headers(headers).get("accept") !== "text/event-stream") {
      requests.push(`page ${after}`);
      const page = pages.shift() ?? "[]";
      return new Response(page, { status: page.startsWith("[") ? 200 : 404 });
    }
    requests.push(`stream ${after}`);
    const text = streams.shift();
    const body = new ReadableStream({
      start(controller) {
        if (text) controller.enqueue(new TextEncoder().encode(text));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const store = new PlantStore({ url: "http://localhost", token: "t", fetch });
  const seen: number[] = [];
  for await (const { seq } of store.events({ after: 0 })) {
    seen.push(seq);
    if (seen.length === 2) break;
  }
  return { seen, requests };
}

test("after 45 seconds of silence, a stream is lost, and another one goes on", async () => {
  const { seen, requests } = await followTwoEvents({
    streams: [
      `retry: 2000\n\nid: 1\ndata: ${renderEvent(1)}\n\nid: 2\nda`,
      `data: ${renderEvent(2)}\n\n`,
    ],
  });

  expect(seen).toEqual([1, 2]);
  expect(requests).toEqual(["page after=0", "stream after=0", "page after=1", "stream after=1"]);
  expect(timersMs).toContain(silenceMs);
});

test("between two streams there is a pause of two to three seconds", async () => {
  await followTwoEvents({
    streams: [`data: ${renderEvent(1)}\n\n`, `data: ${renderEvent(2)}\n\n`],
  });

  const pausesMs = timersMs.filter((durationMs) => durationMs >= 2_000 && durationMs <= 3_000);
  expect(pausesMs).not.toBeEmpty();
});

test("a stream that leaves an event out is given up for a page", async () => {
  const { seen, requests } = await followTwoEvents({
    streams: [`data: ${renderEvent(2)}\n\n`],
    pages: ["[]", `[${renderEvent(1)},${renderEvent(2)}]`],
  });

  expect(seen).toEqual([1, 2]);
  expect(requests).toEqual(["page after=0", "stream after=0", "page after=0"]);
});

test("a proxy's own 404 instead of a page doesn't end the events", async () => {
  const { seen, requests } = await followTwoEvents({
    streams: [`data: ${renderEvent(1)}\n\n`, `data: ${renderEvent(2)}\n\n`],
    pages: ["[]", "<p>Not here"],
  });

  expect(seen).toEqual([1, 2]);
  expect(requests).toEqual(["page after=0", "stream after=0", "page after=1", "stream after=1"]);
});

test("pages bring the events if a proxy holds streams back from their beginning", async () => {
  const { seen, requests } = await followTwoEvents({
    streams: [],
    pages: ["[]", `[${renderEvent(1)}]`, `[${renderEvent(2)}]`],
  });

  expect(seen).toEqual([1, 2]);
  expect(requests).toEqual([
    "page after=0",
    "stream after=0",
    "page after=0",
    "stream after=1",
    "page after=1",
  ]);
  expect(timersMs).toContain(beginMs);
});
