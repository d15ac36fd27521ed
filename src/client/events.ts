/**
 * Follows the events of a garden, without an end:
 *
 *     pages of what is kept ──▶ a stream of what happens ──▶ it's lost: a pause, and pages again
 *
 * Pages are ordinary calls: they retry, renew the token, and report what is wrong. Where no stream
 * begins, as behind a proxy that buffers them, pages are all there is.
 */
import { pause, watch } from "./send.ts";
import type { EventPage, PlantEvent } from "./types.ts";
import { quoteIds, toPlant } from "./wire-text.ts";

/** After it, a stream that has sent nothing yet counts as buffered. */
const beginMs = 5_000;
/** The service sends a comment every 15 seconds. After this long without one, a stream is lost. */
const silenceMs = 45_000;
/** How often pages are asked for where there is no stream. */
const pollMs = 2_000;
/** Streams that don't begin are tried less and less often: in the end, after so many pages. */
const pollsMax = 127;
const retryMsMax = 60_000;
/** Longer than any event. */
const lineLengthMax = 64 * 1024;

/** How long to wait for a stream's response. The pages report why there is none. */
export const streamPolicy = { retries: 0, limitedRetries: 0, timeoutMs: beginMs } as const;
/** Once the first page is here, the rest comes when it can. */
export const endlessPolicy = {
  retries: Number.POSITIVE_INFINITY,
  limitedRetries: Number.POSITIVE_INFINITY,
} as const;

export interface EventCalls {
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
  let failedStreams = 0;
  let polls = 0;
  for (let isFirst = true; ; isFirst = false) {
    const { events, next } = await readPage(position, isFirst);
    position = events.at(-1)?.seq ?? position ?? 0;
    yield events;
    if (next !== undefined) continue;
    let pauseMs = pollMs;
    if (polls > 0) polls--;
    else {
      const body = await openStream(position).catch(() => undefined);
      const stream = new EventStream(body, position);
      const unwatch = watch(signal, () => stream.close());
      try {
        while (!signal?.aborted) {
          const some = await stream.next();
          if (!some) break;
          yield some;
        }
      } finally {
        unwatch();
        stream.close();
      }
      ({ position, retryMs: pauseMs } = stream);
      failedStreams = stream.hasBegun ? 0 : failedStreams + 1;
      polls = Math.min(2 ** failedStreams - 1, pollsMax);
    }
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
  retryMs = pollMs;
  hasBegun = false;

  constructor(body: ReadableStream<Uint8Array> | undefined, position: number) {
    this.#reader = body?.getReader();
    this.position = position;
  }

  /** What has come, which may be no event; absent if the stream has ended or is lost. */
  async next(): Promise<PlantEvent[] | undefined> {
    const timer = setTimeout(() => this.close(), this.hasBegun ? silenceMs : beginMs);
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
    this.hasBegun = true;
    const lines = (this.#text + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#text = lines.pop() ?? "";
    if (this.#text.length > lineLengthMax) throw new RangeError("The line is too long.");
    const valuesOf = (field: string) =>
      lines.filter((line) => line.startsWith(field)).map((line) => line.slice(field.length));
    for (const retry of valuesOf("retry:")) {
      this.retryMs = Math.min(Math.max(pollMs, Number(retry) || 0), retryMsMax);
    }
    const events = parseEvents(`[${valuesOf("data:")}]`, this.position);
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
    return { ...event, plant: toPlant(event.plant) };
  });
}
