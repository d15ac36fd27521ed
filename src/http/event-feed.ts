/**
 * Events as they happen, for all clients that listen on this thread:
 *
 *     every 250 ms, one poll for the last event of each garden that has listeners
 *          └─▶ new ones are read once for all listeners of the garden ──▶ its buffer
 *                                                                           │
 *                          each listener takes chunks at its client's pace ◀┘
 *
 * Nothing is pushed from a write, so it works the same on both engines and across instances. A
 * client that resumes reads older events from storage until it reaches the buffer. One that falls
 * out of the buffer is disconnected, and resumes.
 */

import type { Authenticator } from "../auth/authenticator.ts";
import type { Caller } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { Events } from "../domain/events.ts";
import type { GardenEvent, PlantStorage } from "../domain/ports.ts";
import { sharedQueue } from "../limits/fair-queue.ts";
import { withoutRefusal } from "../limits/overload.ts";
import type { Scheduler } from "../limits/scheduler.ts";
import type { Metrics } from "../shared/metrics.ts";
import { singleFlight } from "../shared/promises.ts";
import type { Connections } from "./connections.ts";
import type { Reply } from "./reply.ts";
import { renderEvent, variesByAccept } from "./reply.ts";
import type { Source } from "./stream.ts";

/** On each thread of a process. */
const streamsPerToken = 64;
const pollMs = 250;
/** In polls: tokens are checked every second, and each listener gets a comment every 15. */
const pollsPerCheck = 4;
const pollsPerComment = 60;
/** Per garden with listeners. */
const bufferBytesMax = 256 * 1024;
/** A chunk has at most this many events, and this much text in their names and tags. */
const chunkEventsMax = 100;
const chunkTextMax = 8 * 1024;
/** How many tokens are looked up at the same time. */
const lookupsMax = 8;
const gardensPerSlice = 1_000;
const pollQueue = sharedQueue("events");

const encoder = new TextEncoder();
const comment = encoder.encode(":\n\n");

interface Chunk {
  readonly bytes: Uint8Array;
  /** The number of its last event. */
  readonly last: number;
  readonly count: number;
  /** When its first event happened. */
  readonly atMs: number;
}

/** Who wants a stream. */
interface Subscription {
  readonly request: Request;
  readonly caller: Caller;
  readonly token: string;
}

/** A garden with listeners. */
interface Channel {
  readonly garden: string;
  readonly listeners: Set<Listener>;
  /** Oldest first. The key is the number of the event before the chunk. */
  readonly buffer: Map<number, Chunk>;
  bytes: number;
  /** The number of the last event in the buffer or, while that is empty, in the garden. */
  last: number;
  /** The garden's version when it had no new events. */
  version: number | undefined;
  /** Reads the new events into the buffer. */
  readonly fill: () => Promise<void>;
}

interface FeedDeps {
  readonly connections: Connections;
  readonly events: Events;
  readonly readVersion: PlantStorage["version"];
  readonly authenticator: Pick<Authenticator, "authenticate" | "findCached">;
  readonly scheduler: Scheduler;
  readonly metrics: Metrics;
}

export class EventFeed {
  readonly #channels = new Map<string, Channel>();
  readonly #listeners = new Set<Listener>();
  /** The number of streams by credential. */
  readonly #streams = new Map<string, number>();
  #timer: Timer | undefined;
  #polls = 0;
  #opened = 0;
  #isClosed = false;

  constructor(private readonly deps: FeedDeps) {}

  get listeners(): number {
    return this.#listeners.size;
  }

  /** Starts after `after`, or fails with `gone` if it can't; absent: starts with the next event. */
  async open({ request, caller, token }: Subscription, after: number | undefined): Promise<Reply> {
    const { credential } = caller;
    const { lastEvent: last } = await this.deps.events.read(caller, after, 1);
    this.#countStream(credential, 1);
    const channel = this.#channels.get(caller.garden) ?? this.#openChannel(caller.garden, last);
    const serial = this.#opened++;
    const position = after ?? last;
    const listener = new Listener(this, serial, channel, request, token, credential, position);
    channel.listeners.add(listener);
    this.#listeners.add(listener);
    this.#timer ??= setInterval(() => this.#onTimer(), pollMs);
    if (this.#isClosed) listener.end();
    return {
      status: 200,
      contentType: "text/event-stream",
      headers: { ...variesByAccept, "X-Accel-Buffering": "no" },
      body: listener,
      isLive: true,
    };
  }

  /** Ends all streams. */
  close(): void {
    this.#isClosed = true;
    endAll(this.#listeners);
  }

  #openChannel(garden: string, last: number): Channel {
    const channel: Channel = {
      garden,
      listeners: new Set(),
      buffer: new Map(),
      bytes: 0,
      last,
      version: undefined,
      fill: singleFlight(() => this.#fill(channel)),
    };
    this.#channels.set(garden, channel);
    return channel;
  }

  /** Fails if the token has too many. */
  #countStream(credential: string, change: 1 | -1): void {
    const streams = (this.#streams.get(credential) ?? 0) + change;
    if (streams > streamsPerToken) throw tooManyStreams;
    if (streams === 0) this.#streams.delete(credential);
    else this.#streams.set(credential, streams);
  }

  /** Forgets a listener whose stream is over. */
  remove(listener: Listener): void {
    const { channel, credential } = listener;
    this.#countStream(credential, -1);
    this.#listeners.delete(listener);
    channel.listeners.delete(listener);
    if (channel.listeners.size === 0) this.#channels.delete(channel.garden);
    if (this.#listeners.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #onTimer(): void {
    this.#polls++;
    this.#poll().catch(() => {
      // The storage is unavailable, which others report. The next poll is soon.
    });
    if (this.#polls % pollsPerCheck === 0) this.#checkTokens();
    // A part of them at each poll, so that thousands don't wake up at once.
    const phase = this.#polls % pollsPerComment;
    for (const listener of this.#listeners) {
      if (listener.serial % pollsPerComment === phase) listener.wake(comment);
    }
  }

  /** Skips gardens whose version shows that nothing has changed. */
  readonly #poll = singleFlight(async () => {
    const changed: { channel: Channel; version: number | undefined }[] = [];
    for (const channel of this.#channels.values()) {
      const version = this.deps.readVersion(channel.garden);
      if (version === undefined || version !== channel.version) changed.push({ channel, version });
    }
    for (let from = 0; from < changed.length; from += gardensPerSlice) {
      await this.turn(pollQueue);
      const slice = changed.slice(from, from + gardensPerSlice);
      const known = new Map(slice.map(({ channel }) => [channel.garden, channel.last]));
      const lastEvents = await this.deps.events.findNew(known);
      for (const { channel, version } of slice) {
        const isNew = lastEvents.has(channel.garden);
        channel.version = isNew ? undefined : version;
        if (isNew) channel.fill();
      }
    }
  });

  /** Reads the new events of a garden, chunk by chunk, and wakes its listeners for each. */
  async #fill(channel: Channel): Promise<void> {
    try {
      for (let lastEvent = Number.POSITIVE_INFINITY; channel.last < lastEvent; ) {
        await this.turn(channel.garden);
        const page = await this.read(channel.garden, channel.last);
        ({ lastEvent } = page);
        if (page.chunk) addChunk(channel, page.chunk);
      }
    } catch (error) {
      // The events don't continue. The clients find out why when they resume.
      if (error instanceof PlantStoreError && error.code === "gone") endAll(channel.listeners);
    }
  }

  /** A chunk of the events after a position, up to another one if that is given. */
  async read(
    garden: string,
    after: number,
    upTo = Number.POSITIVE_INFINITY,
  ): Promise<{ chunk: Chunk | undefined; lastEvent: number }> {
    const page = await this.deps.events.read({ garden }, after, chunkEventsMax, chunkTextMax);
    const requested = page.events.filter(({ seq }) => seq <= upTo);
    return { chunk: toChunk(requested), lastEvent: page.lastEvent };
  }

  /** Ends the streams whose token is no longer valid, or can't be checked. */
  readonly #checkTokens = singleFlight(async () => {
    const { authenticator } = this.deps;
    const unknown = [...this.#listeners].filter(({ token }) => !authenticator.findCached(token));
    const byToken = Map.groupBy(unknown, ({ token }) => token).entries();
    const lookUp = async () => {
      for (const [token, listeners] of byToken) {
        await this.turn(pollQueue);
        // Even if it's refused for load: nobody may listen for long with a token that was revoked.
        await authenticator.authenticate(token).catch(() => endAll(listeners));
      }
    };
    await Promise.all(Array.from({ length: lookupsMax }, lookUp));
  });

  /** Closes a request's connection soon, even if its client doesn't read. */
  disconnect(request: Request): void {
    this.deps.connections.disconnect(request);
  }

  turn(queue: string): Promise<unknown> {
    return this.deps.scheduler.turn(queue);
  }

  /** The delay counts only if the client was waiting: others read older events, or slowly. */
  countSent({ count, atMs }: Chunk, hasWaited: boolean): void {
    this.deps.metrics.countEvents(count, hasWaited ? Date.now() - atMs : undefined);
  }
}

/** One stream. As small as possible: there may be ten thousand. */
class Listener implements Source<Uint8Array> {
  /** Text to send before the next events. */
  #preamble: Uint8Array | undefined;
  /** Once it has reached the buffer. Before, it reads older events at its own pace. */
  #mustKeepUp = false;
  #isEnded = false;
  /** Set while the client has read everything and waits for more. */
  #resume: (() => void) | undefined;

  constructor(
    private readonly feed: EventFeed,
    /** Counts the streams that were opened. */
    readonly serial: number,
    readonly channel: Channel,
    private readonly request: Request,
    readonly token: string,
    readonly credential: string,
    /** The number of the last event that was sent. */
    private position: number,
  ) {
    // With its position, a client that drops before its first event resumes there.
    this.#preamble = encoder.encode(`retry: 2000\nid: ${position}\n\n`);
  }

  async next(): Promise<Uint8Array | undefined> {
    const { channel } = this;
    for (let hasWaited = false; ; hasWaited = true) {
      // Thousands of listeners may wake up together. In turns, they hold up nobody else.
      await this.feed.turn(channel.garden);
      if (this.#isEnded) return undefined;
      const preamble = this.#preamble;
      this.#preamble = undefined;
      if (preamble) return preamble;
      if (this.position < channel.last) return this.#nextChunk(hasWaited);
      this.#mustKeepUp = true;
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
    }
  }

  /** Absent if the client is too slow, or the events after its position are gone. */
  async #nextChunk(hasWaited: boolean): Promise<Uint8Array | undefined> {
    const { garden, buffer, last } = this.channel;
    if (this.isTooSlow()) return undefined;
    this.#mustKeepUp ||= buffer.has(this.position);
    const read = () => this.feed.read(garden, this.position, last);
    const older = () => withoutRefusal(read).catch(() => undefined);
    const chunk = buffer.get(this.position) ?? (await older())?.chunk;
    if (!chunk) return undefined;
    this.position = chunk.last;
    this.feed.countSent(chunk, hasWaited);
    return chunk.bytes;
  }

  /** Does nothing unless the client waits: one that doesn't read gets no comments either. */
  wake(preamble?: Uint8Array): void {
    if (!this.#resume) return;
    this.#preamble = preamble;
    this.#resume();
    this.#resume = undefined;
  }

  /** Whether it fell out of the buffer. */
  isTooSlow(): boolean {
    const { buffer, last } = this.channel;
    const [oldest = last] = buffer.keys();
    return this.#mustKeepUp && this.position < oldest;
  }

  /** A client that doesn't read wouldn't notice the end of the stream, so it's disconnected. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#resume) this.wake();
    else this.feed.disconnect(this.request);
  }

  close(): void {
    this.#isEnded = true;
    this.wake();
    this.feed.remove(this);
  }
}

const tooManyStreams = new PlantStoreError(
  "rate-limited",
  `This token has ${streamsPerToken} streams open, which is the limit. Close one of them first.`,
  { limit: "streams" },
);

function endAll(listeners: Iterable<Listener>): void {
  for (const listener of listeners) listener.end();
}

function addChunk(channel: Channel, chunk: Chunk): void {
  const { buffer, listeners } = channel;
  buffer.set(channel.last, chunk);
  channel.last = chunk.last;
  channel.bytes += chunk.bytes.length;
  for (const [after, { bytes }] of buffer) {
    if (channel.bytes <= bufferBytesMax) break;
    buffer.delete(after);
    channel.bytes -= bytes.length;
  }
  for (const listener of listeners) {
    if (listener.isTooSlow()) listener.end();
    else listener.wake();
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
