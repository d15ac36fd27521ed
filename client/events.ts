/**
 * Follows the events of a garden, without an end:
 *
 *     pages of what is kept ──▶ a stream of what happens ──▶ it's lost: a pause, and pages again
 *
 * Pages are ordinary calls: they retry, renew the token, and report what is wrong. Where no stream
 * begins, as behind a proxy that buffers them, the pages alone bring the events.
 */
import { hasCode } from "./problem-error.ts";
import { pause } from "./send.ts";
import type { EventPage, PlantEvent } from "./types.ts";
import { quoteIds, readPlant } from "./wire-text.ts";

/** If a stream has sent nothing by then, a proxy is probably buffering it. */
const beginMs = 5_000;
/** The service sends a comment every 15 seconds. After this long without one, a stream is lost. */
const silenceMs = 45_000;
/** The pause after a stream, which is also what the service asks for in `retry`. */
const pauseMs = 2_000;

const noDeadline = { deadlineMs: Number.POSITIVE_INFINITY } as const;
/** How long to wait for a stream's response. The pages report why there is none. */
export const streamPolicy = {
  retries: 0,
  limitedRetries: 0,
  timeoutMs: beginMs,
  ...noDeadline,
} as const;
/** After the first page, keep trying forever. */
export const endlessPolicy = {
  retries: Number.POSITIVE_INFINITY,
  limitedRetries: Number.POSITIVE_INFINITY,
  ...noDeadline,
} as const;

interface EventCalls {
  readonly readPage: (after: number | undefined, isFirst: boolean) => Promise<EventPage>;
  /** Absent if the response isn't a stream. */
  readonly openStream: (after: number) => Promise<ReadableStream<Uint8Array> | undefined>;
}

/** Yields the events after `after`, each once and in order, as many at a time as have come. */
export async function* followEvents(
  { readPage, openStream }: EventCalls,
  after: number | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<PlantEvent[], never, undefined> {
  let position = after;
  for (let isFirst = true; ; isFirst = false) {
    const page = await readPage(position, isFirst).catch((error) => {
      // A proxy's own page is no reason to end: the next try may reach the service.
      if (isFirst || !hasCode(error, "unexpected")) throw error;
      return { events: [], next: undefined };
    });
    const { events, next } = page;
    position = events.at(-1)?.seq ?? position ?? 0;
    yield events;
    if (next !== undefined) continue;
    const body = await openStream(position).catch(() => undefined);
    const stream = new EventStream(body, position);
    const close = () => stream.close();
    signal?.addEventListener("abort", close);
    try {
      while (!signal?.aborted) {
        const some = await stream.next();
        if (!some) break;
        yield some;
      }
    } finally {
      signal?.removeEventListener("abort", close);
      close();
    }
    position = stream.position;
    // Jitter: clients that lost their streams together shouldn't come back together.
    await pause(pauseMs * (1 + Math.random() / 2), signal);
  }
}

class EventStream {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #decoder = new TextDecoder();
  /** The start of a line whose rest hasn't come yet. */
  #text = "";
  /** The number of the last event. */
  position: number;
  #hasBegun = false;

  constructor(body: ReadableStream<Uint8Array> | undefined, position: number) {
    this.#reader = body?.getReader();
    this.position = position;
  }

  /** What has come, which may be no event; absent if the stream has ended or is lost. */
  async next(): Promise<PlantEvent[] | undefined> {
    const timer = setTimeout(() => this.close(), this.#hasBegun ? silenceMs : beginMs);
    try {
      const chunk = await this.#reader?.read();
      return chunk?.value && this.#parse(chunk.value);
    } catch {
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#reader?.cancel().catch(() => {});
  }

  #parse(bytes: Uint8Array): PlantEvent[] {
    this.#hasBegun = true;
    const lines = (this.#text + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#text = lines.pop() ?? "";
    const data = lines.filter((line) => line.startsWith("data:"));
    const items = data.map((line) => line.slice("data:".length));
    const events = parseEvents(`[${items}]`, this.position);
    this.position = events.at(-1)?.seq ?? this.position;
    return events;
  }
}

/** Throws unless they are the next ones after `after`. */
export function parseEvents(text: string, after: number | undefined): PlantEvent[] {
  const events: PlantEvent[] = JSON.parse(quoteIds(text));
  const first = after === undefined ? events[0]?.seq : after + 1;
  return events.map((event, index) => {
    if (event.seq !== Number(first) + index) throw new TypeError("An event is missing.");
    return { ...event, plant: readPlant(event.plant) };
  });
}
