/**
 * Events as they happen, for all clients that listen on this thread:
 *
 *     every 250 ms, one look at the last event of every garden that has listeners
 *          └─▶ a garden with new ones: read once for all its listeners ──▶ its buffer
 *                                                                            │
 *                           each listener takes chunks at its client's pace ◀┘
 *
 * Nothing is pushed from a write, so it's the same on both engines and between instances. A client
 * that resumes reads older events from storage until it reaches the buffer. One that falls out of
 * the buffer is disconnected, and resumes.
 */
import { noGarden } from "../async/fair-queue.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Caller } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { Events } from "../domain/events.ts";
import type { GardenEvent, PlantStorage } from "../domain/storage.ts";
import type { Metrics } from "../metrics.ts";
import type { Reply } from "./operation.ts";
import { renderEvent } from "./response.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Source } from "./stream.ts";

const lookMs = 250;
/** In looks: a token is checked every second, and each listener gets a comment every 15 seconds. */
const looksPerCheck = 4;
const looksPerComment = 60;
/** Of each garden with listeners. */
const bufferBytesMax = 256 * 1024;
/** What is read and sent at once: at most so many events, with names and tags of this length. */
const chunkEventsMax = 100;
const chunkTextMax = 8 * 1024;
/** How many tokens are looked up at the same time. */
const lookupsMax = 8;
const gardensPerSlice = 1_000;
const lookQueue = `${noGarden}events`;
export const streamsPerToken = 64;

const encoder = new TextEncoder();
const opening = encoder.encode("retry: 2000\n\n");
const comment = encoder.encode(":\n\n");

interface Chunk {
  readonly bytes: Uint8Array;
  /** The number of its last event. */
  readonly last: number;
  readonly count: number;
  /** When its first event happened. */
  readonly atMs: number;
}

/** A garden with listeners. */
interface Channel {
  readonly garden: string;
  readonly listeners: Set<Listener>;
  /** The oldest first, each by the number of the event before it. */
  readonly buffer: Map<number, Chunk>;
  bytes: number;
  /** The number of the last event in the buffer; before there was any, of the garden. */
  last: number;
  isReading: boolean;
  /** The garden's version when there were no new events. */
  version: number | undefined;
}

interface FeedDeps {
  readonly events: Events;
  readonly readVersion: PlantStorage["version"];
  readonly authenticator: Pick<Authenticator, "authenticate" | "findCached">;
  readonly scheduler: Scheduler;
  readonly metrics: Metrics;
  readonly streamCounts?: StreamCounts | undefined;
}

export class EventFeed {
  readonly #deps: FeedDeps;
  readonly #streams: Int32Array;
  readonly #channels = new Map<string, Channel>();
  /** Each listener is in one of them. A look sends comments to the next one. */
  readonly #commented = Array.from({ length: looksPerComment }, () => new Set<Listener>());
  #timer: Timer | undefined;
  #looks = 0;
  #opened = 0;
  #isLooking = false;
  #isChecking = false;
  #isClosed = false;
  listeners = 0;
  /** Closes a request's connection soon, even if its client doesn't read. The server sets it. */
  disconnect: (request: Request) => void = () => {};

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.#streams = new Int32Array(deps.streamCounts ?? createStreamCounts());
  }

  /** Fails with `gone` if it can't go on after `after`; absent: only what comes from now on. */
  async open(
    request: Request,
    caller: Caller,
    token: string,
    after: number | undefined,
  ): Promise<Reply> {
    const slot = slotOf(caller, this.#streams);
    if (Atomics.add(this.#streams, slot, 1) >= streamsPerToken) {
      Atomics.sub(this.#streams, slot, 1);
      throw tooManyStreams;
    }
    let last: number;
    try {
      last = (await this.#deps.events.read(caller, after, 1)).lastEvent;
    } catch (error) {
      Atomics.sub(this.#streams, slot, 1);
      throw error;
    }
    return {
      status: 200,
      contentType: "text/event-stream",
      headers: { "X-Accel-Buffering": "no" },
      body: this.#listen(request, caller.garden, token, slot, after ?? last, last),
      isLive: true,
    };
  }

  /** Ends all streams. */
  close(): void {
    this.#isClosed = true;
    for (const channel of this.#channels.values()) this.#endAll(channel);
  }

  #listen(
    request: Request,
    garden: string,
    token: string,
    slot: number,
    position: number,
    last: number,
  ): Listener {
    let channel = this.#channels.get(garden);
    if (!channel) {
      const buffer = new Map<number, Chunk>();
      const isReading = false;
      const listeners = new Set<Listener>();
      channel = { garden, listeners, buffer, bytes: 0, last, isReading, version: undefined };
      this.#channels.set(garden, channel);
    }
    const commented = this.#commented[this.#opened++ % looksPerComment] as Set<Listener>;
    const listener = new Listener(this, channel, request, token, position, () => {
      Atomics.sub(this.#streams, slot, 1);
      commented.delete(listener);
      channel.listeners.delete(listener);
      if (channel.listeners.size === 0) this.#channels.delete(garden);
      this.listeners--;
      if (this.listeners === 0) clearInterval(this.#timer);
    });
    channel.listeners.add(listener);
    commented.add(listener);
    this.listeners++;
    if (this.listeners === 1) this.#timer = setInterval(() => this.#onTimer(), lookMs);
    if (this.#isClosed) listener.end();
    return listener;
  }

  #onTimer(): void {
    this.#looks++;
    this.#look().catch(() => {
      // The storage is unavailable, which others report. The next look is soon.
    });
    if (this.#looks % looksPerCheck === 0) this.#checkTokens();
    const due = this.#commented[this.#looks % looksPerComment] as Set<Listener>;
    for (const listener of due) listener.wake(comment);
  }

  /** Passes over gardens whose version says that nothing has changed. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const due: { channel: Channel; version: number | undefined }[] = [];
      for (const channel of this.#channels.values()) {
        const version = this.#deps.readVersion(channel.garden)?.all;
        if (version === undefined || version !== channel.version) due.push({ channel, version });
      }
      for (let from = 0; from < due.length; from += gardensPerSlice) {
        await this.turn(lookQueue);
        const slice = due.slice(from, from + gardensPerSlice);
        const known = new Map(slice.map(({ channel }) => [channel.garden, channel.last]));
        const found = await this.#deps.events.findNew(known);
        for (const { channel, version } of slice) {
          const isNew = found.has(channel.garden);
          channel.version = isNew ? undefined : version;
          if (isNew) this.#fill(channel);
        }
      }
    } finally {
      this.#isLooking = false;
    }
  }

  /** Reads the new events of a garden, chunk by chunk, and wakes its listeners for each. */
  async #fill(channel: Channel): Promise<void> {
    if (channel.isReading) return;
    channel.isReading = true;
    try {
      for (let lastEvent = Number.POSITIVE_INFINITY; channel.last < lastEvent; ) {
        const page = await this.read(channel);
        ({ lastEvent } = page);
        if (page.chunk) this.#add(channel, page.chunk);
      }
    } catch (error) {
      // The garden's events don't go on: the clients find out why when they resume.
      if (isGone(error)) this.#endAll(channel);
    } finally {
      channel.isReading = false;
    }
  }

  /** The events after a position, up to the channel's last if that is given. */
  async read(
    { garden, last: after }: Pick<Channel, "garden" | "last">,
    upTo = Number.POSITIVE_INFINITY,
  ): Promise<{ chunk: Chunk | undefined; lastEvent: number }> {
    await this.turn(garden);
    const page = await this.#deps.events.read({ garden }, after, chunkEventsMax, chunkTextMax);
    const wanted = page.events.filter(({ seq }) => seq <= upTo);
    return { chunk: toChunk(wanted), lastEvent: page.lastEvent };
  }

  #add(channel: Channel, chunk: Chunk): void {
    channel.buffer.set(channel.last, chunk);
    channel.last = chunk.last;
    channel.bytes += chunk.bytes.length;
    for (const [after, { bytes }] of channel.buffer) {
      if (channel.bytes <= bufferBytesMax) break;
      channel.buffer.delete(after);
      channel.bytes -= bytes.length;
    }
    for (const listener of channel.listeners) {
      if (listener.isTooSlow()) listener.end();
      else listener.wake();
    }
  }

  /** A stream ends with its token. If nobody can tell, it ends, too. */
  async #checkTokens(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { authenticator } = this.#deps;
    const all = Array.from(this.#channels.values(), ({ listeners }) => [...listeners]).flat();
    const unknown = all.filter(({ token }) => !authenticator.findCached(token));
    const byToken = Map.groupBy(unknown, ({ token }) => token).entries();
    const lookUp = async () => {
      for (const [token, listeners] of byToken) {
        await this.turn(lookQueue);
        await authenticator.authenticate(token).catch(() => {
          for (const listener of listeners) listener.end();
        });
      }
    };
    await Promise.all(Array.from({ length: lookupsMax }, lookUp));
    this.#isChecking = false;
  }

  #endAll({ listeners }: Channel): void {
    for (const listener of listeners) listener.end();
  }

  turn(queue: string): Promise<unknown> {
    return this.#deps.scheduler.turn(queue);
  }

  /** The delay counts only where the client was waiting: others read older events, or slowly. */
  countSent({ count, atMs }: Chunk, hasWaited: boolean): void {
    this.#deps.metrics.countEvents(count, hasWaited ? Date.now() - atMs : undefined);
  }
}

/** One stream. As small as possible: there may be ten thousand. */
class Listener implements Source<Uint8Array> {
  readonly #feed: EventFeed;
  readonly channel: Channel;
  readonly #request: Request;
  readonly token: string;
  readonly #onClose: () => void;
  /** The number of the last event that was sent. */
  #position: number;
  #hasBegun = false;
  /** Whether it has reached the buffer. From then on, it must keep up. */
  #isLive = false;
  #isEnded = false;
  #isClosed = false;
  #wake: ((text?: Uint8Array) => void) | undefined;
  #isWaking = false;

  constructor(
    feed: EventFeed,
    channel: Channel,
    request: Request,
    token: string,
    position: number,
    onClose: () => void,
  ) {
    this.#feed = feed;
    this.channel = channel;
    this.#request = request;
    this.token = token;
    this.#position = position;
    this.#onClose = onClose;
  }

  async next(): Promise<Uint8Array | undefined> {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return opening;
    }
    const { channel } = this;
    let hasWaited = false;
    while (!this.#isEnded) {
      let chunk = channel.buffer.get(this.#position);
      if (!chunk && this.#position >= channel.last) {
        this.#isLive = true;
        const text = await new Promise<Uint8Array | undefined>((resolve) => {
          this.#wake = resolve;
        });
        if (text) return text;
        hasWaited = true;
        continue;
      }
      chunk ??= await this.#readOlder();
      if (!chunk) break;
      this.#isLive ||= channel.buffer.has(this.#position);
      this.#position = chunk.last;
      this.#feed.countSent(chunk, hasWaited);
      return chunk.bytes;
    }
    return undefined;
  }

  /**
   * In its garden's turn, so that thousands of listeners hold up nobody. It does nothing unless the
   * listener waits: a client that doesn't read gets no comments either.
   */
  async wake(text?: Uint8Array): Promise<void> {
    if (!this.#wake || this.#isWaking) return;
    this.#isWaking = true;
    await this.#feed.turn(this.channel.garden);
    this.#isWaking = false;
    const wake = this.#wake;
    this.#wake = undefined;
    wake(text);
  }

  /** Whether it fell out of the buffer. */
  isTooSlow(): boolean {
    const { buffer, last } = this.channel;
    const [oldest = last] = buffer.keys();
    return this.#isLive && this.#position < oldest;
  }

  /** A client that doesn't read wouldn't notice the end of the stream, so it's disconnected. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#wake) this.wake();
    else this.#feed.disconnect(this.#request);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isEnded = true;
    this.wake();
    this.#onClose();
  }

  /** Absent if the client is too slow, or the events after its position are gone. */
  async #readOlder(): Promise<Chunk | undefined> {
    if (this.isTooSlow()) return undefined;
    const { garden, last } = this.channel;
    const page = await this.#feed
      .read({ garden, last: this.#position }, last)
      .catch(() => undefined);
    return page?.chunk;
  }
}

function toChunk(events: readonly GardenEvent[]): Chunk | undefined {
  const [first, last] = [events[0], events.at(-1)];
  if (!first || !last) return undefined;
  const texts = events.map(
    (event) => `id: ${event.seq}\nevent: plant.${event.type}\ndata: ${renderEvent(event)}\n\n`,
  );
  const bytes = encoder.encode(texts.join(""));
  return { bytes, last: last.seq, count: events.length, atMs: first.atMs };
}

function isGone(error: unknown): boolean {
  return error instanceof PlantStoreError && error.code === "gone";
}

/** How many streams the tokens of this process have open, in memory that its threads share. */
export type StreamCounts = SharedArrayBuffer;

/** Tokens share a count by a hash. With many tokens, one may get fewer streams; it's rare. */
const streamSlots = 2 ** 20;

/** After the counts comes a seed, so that nobody who chooses their name can aim at a slot. */
export function createStreamCounts(): StreamCounts {
  const counts = new Int32Array(new SharedArrayBuffer(4 * (streamSlots + 1)));
  counts[streamSlots] = crypto.getRandomValues(new Int32Array(1))[0] ?? 0;
  return counts.buffer as SharedArrayBuffer;
}

function slotOf({ credential }: Caller, counts: Int32Array): number {
  return Number(BigInt(Bun.hash(credential, counts[streamSlots])) % BigInt(streamSlots));
}

const tooManyStreams = new PlantStoreError(
  "rate-limited",
  `This token has ${streamsPerToken} streams open, which is the limit. Close one of them first.`,
  { limit: "streams" },
);

/** Whether a client asks for a stream, and doesn't prefer JSON. */
export function wantsStream(headers: Headers): boolean {
  const accept = (headers.get("accept") ?? "").toLowerCase();
  const quality = qualityOf(accept, "text/event-stream");
  return quality > 0 && quality >= qualityOf(accept, "application/json");
}

/** How much a media type that `Accept` names is wanted, from 0 to 1 (RFC 9110, 12.4.2). */
function qualityOf(accept: string, type: string): number {
  const parts = accept.split(",").map((part) => part.split(";").map((each) => each.trim()));
  const found = parts.find(([name]) => name === type);
  if (!found) return 0;
  const quality = found.find((parameter) => parameter.startsWith("q="));
  return quality === undefined ? 1 : Number(quality.slice(2)) || 0;
}
