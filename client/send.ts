/** Sends a request, with timeouts and retries. It knows nothing about plants. */
import { PlantStoreUnreachable, readRetryAfter } from "./problem-error.ts";

interface ClientRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body?: string | undefined;
  /** Whether the runtime may silently resend it when a reused connection turns out to be closed. */
  readonly mayRuntimeResend: boolean;
  /** Whether to return a stream of events while it goes on, as `body`. */
  readonly isStream?: boolean | undefined;
  /** The key to repeat the call with. */
  readonly idempotencyKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RetryPolicy {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** After failures. */
  readonly retries: number;
  /** After 429. */
  readonly limitedRetries: number;
  /** The longest `Retry-After` to wait for. */
  readonly retryAfterMsMax: number;
  /** For each try, to the last byte of the response. */
  readonly timeoutMs: number;
  /** Shared by all calls of a client. */
  readonly pacer: Pacer;
}

export interface ClientResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body?: ReadableStream<Uint8Array> | undefined;
  /** Whether an earlier try may have succeeded although its response was lost. */
  readonly isRepeated: boolean;
  /** The key to repeat the call with. */
  readonly idempotencyKey?: string | undefined;
}

/** The service, or a proxy in front of it, is busy, restarting or cut off. */
export const retriedStatuses: readonly number[] = [429, 502, 503, 504];
const pauseMsFirst = 100;
const pauseMsMax = 5_000;
/** How long after the last wait for a rate limit calls still go one at a time. */
const pacedMs = 10_000;

/**
 * Once a rate limit leaves no request, the calls of a client share one wait and then go one at a
 * time. If all of them came back at once, all but one or two would be refused again.
 */
export class Pacer {
  #openAtMs = Number.NEGATIVE_INFINITY;
  #last: Promise<void> = Promise.resolve();

  /**
   * Waits for the caller's turn. Returns a function that ends it, or nothing if calls aren't being
   * paced.
   */
  async enter(signal: AbortSignal | undefined): Promise<(() => void) | undefined> {
    if (performance.now() > this.#openAtMs + pacedMs) return undefined;
    const before = this.#last;
    let leave = () => {};
    this.#last = new Promise((resolve) => {
      // If this caller gives up early, the next one still waits for the callers ahead.
      leave = () => void before.then(resolve);
    });
    try {
      await untilDone((done) => void before.then(done), signal);
    } catch (reason) {
      leave();
      throw reason;
    }
    return leave;
  }

  postpone(durationMs: number): void {
    if (durationMs === 0) return;
    this.#openAtMs = Math.max(this.#openAtMs, performance.now() + durationMs);
  }

  async untilOpen(signal: AbortSignal | undefined): Promise<void> {
    const durationMs = this.#openAtMs - performance.now();
    if (durationMs > 0) await pause(durationMs, signal);
  }
}

/**
 * Returns the first response that isn't worth a retry, or the last one. Throws
 * `PlantStoreUnreachable` if none came, and the signal's reason once it is aborted.
 */
export async function send(request: ClientRequest, policy: RetryPolicy): Promise<ClientResponse> {
  const { idempotencyKey, signal } = request;
  const { pacer } = policy;
  let isRepeated = false;
  let limited = 0;
  let endTurn: (() => void) | undefined;
  try {
    for (let tries = 1; ; tries++) {
      let retryAfterMs = 0;
      let isLimited = false;
      endTurn ??= await pacer.enter(signal);
      try {
        await pacer.untilOpen(signal);
        const response = await sendOnce(request, policy);
        retryAfterMs = readRetryAfter(response.headers) ?? 0;
        isLimited = response.status === 429;
        if (isLimited) limited++;
        const resetMs = readLimitResetMs(response.headers);
        // If the limit is used up, the next request waits instead of getting a 429.
        if (policy.limitedRetries > 0 && resetMs <= policy.retryAfterMsMax) pacer.postpone(resetMs);
        const hasTriesLeft = isLimited
          ? limited <= policy.limitedRetries
          : tries - limited <= policy.retries;
        const isRetried =
          hasTriesLeft &&
          retryAfterMs <= policy.retryAfterMsMax &&
          retriedStatuses.includes(response.status);
        if (!isRetried) return { ...response, isRepeated, idempotencyKey };
        // Only after 429 is it certain that nothing was done.
        isRepeated ||= !isLimited;
      } catch (error) {
        signal?.throwIfAborted();
        const hasTriesLeft = tries - limited <= policy.retries;
        if (!hasTriesLeft) {
          const { origin } = new URL(request.url);
          throw new PlantStoreUnreachable(origin, tries, error, idempotencyKey);
        }
        isRepeated = true;
      }
      const stepMs = Math.min(pauseMsMax, pauseMsFirst * 2 ** (tries - 1));
      // Jitter: clients that failed together shouldn't come back together.
      const pauseMs = retryAfterMs + stepMs * (0.5 + Math.random() / 2);
      if (isLimited) {
        pacer.postpone(pauseMs);
        continue;
      }
      // Other calls needn't wait for this one's retry.
      endTurn?.();
      endTurn = undefined;
      await pause(pauseMs, signal);
    }
  } finally {
    endTurn?.();
  }
}

/** If the rate limit leaves no request: how long until it leaves one more. Otherwise 0. */
function readLimitResetMs(headers: Headers): number {
  const [, seconds = 0] = /"requests";r=0;t=(\d+)/.exec(headers.get("ratelimit") ?? "") ?? [];
  return Number(seconds) * 1_000;
}

async function sendOnce(request: ClientRequest, { fetch, timeoutMs }: RetryPolicy) {
  const { url, method, headers, body = null, signal } = request;
  signal?.throwIfAborted();
  const controller = new AbortController();
  const giveUp = () => controller.abort(new Error(`no response within ${timeoutMs} ms`));
  const timer = setTimeout(giveUp, timeoutMs);
  const unwatch = watch(signal, () => controller.abort(signal?.reason));
  try {
    const response = await fetch(url, {
      method,
      headers,
      body,
      signal: controller.signal,
      // The token must not go anywhere else.
      redirect: "manual",
      // Bun resends GET and DELETE by itself when a reused connection breaks.
      ...(!request.mayRuntimeResend && { keepalive: false }),
    });
    const { status, headers: received } = response;
    if (request.isStream && received.get("content-type")?.startsWith("text/event-stream")) {
      return { status, headers: received, text: "", body: response.body ?? undefined };
    }
    return { status, headers: received, text: await response.text() };
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
    unwatch();
  }
}

export function pause(durationMs: number, signal: AbortSignal | undefined): Promise<void> {
  return untilDone((done) => setTimeout(done, durationMs), signal);
}

/** Throws the signal's reason once it is aborted. `begin` may return a timer, which then ends. */
async function untilDone(
  begin: (done: () => void) => ReturnType<typeof setTimeout> | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = begin(() => {
      unwatch();
      resolve();
    });
    const unwatch = watch(signal, () => {
      clearTimeout(timer);
      reject(signal?.reason);
    });
  });
}

/** One listener for all calls that share a signal: Node warns of a leak beyond ten. */
const watchers = new WeakMap<AbortSignal, Set<() => void>>();

/** Returns a function that ends the watch. */
export function watch(signal: AbortSignal | undefined, act: () => void): () => void {
  if (signal === undefined) return () => {};
  const acts = watchers.get(signal) ?? new Set();
  if (!watchers.has(signal)) {
    watchers.set(signal, acts);
    signal.addEventListener("abort", () => {
      for (const each of acts) each();
    });
  }
  acts.add(act);
  return () => acts.delete(act);
}
