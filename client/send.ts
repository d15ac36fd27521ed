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

/** What came back from a try. */
interface ReceivedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body?: ReadableStream<Uint8Array> | undefined;
}

export interface ClientResponse extends ReceivedResponse {
  /** Whether an earlier try may have succeeded although its response was lost. */
  readonly isRepeated: boolean;
  /** The key to repeat the call with. */
  readonly idempotencyKey?: string | undefined;
}

/** The request came too slowly, or the service or a proxy is busy, restarting or cut off. */
export const retriedStatuses: readonly number[] = [408, 429, 502, 503, 504];
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
  #last: Promise<unknown> = Promise.resolve();

  /** Runs a try: at once, or after those of other calls if calls are being paced. */
  run<Result>(work: () => Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
    if (performance.now() > this.#openAtMs + pacedMs) return work();
    const before = this.#last;
    const turn = async () => {
      await untilSettled(before, signal);
      const waitMs = this.#openAtMs - performance.now();
      if (waitMs > 0) await pause(waitMs, signal);
      return work();
    };
    const result = turn();
    // If this caller gives up early, the next one still waits for the callers ahead.
    this.#last = Promise.allSettled([before, result]).then(() => {});
    return result;
  }

  postpone(durationMs: number): void {
    if (durationMs === 0) return;
    this.#openAtMs = Math.max(this.#openAtMs, performance.now() + durationMs);
  }
}

/**
 * Returns the first response that isn't worth a retry, or the last one. Throws
 * `PlantStoreUnreachable` if none came, and the signal's reason once it is aborted.
 */
export async function send(request: ClientRequest, policy: RetryPolicy): Promise<ClientResponse> {
  const { idempotencyKey, signal } = request;
  const { pacer, retries, limitedRetries, retryAfterMsMax } = policy;
  let isRepeated = false;
  let limited = 0;
  for (let tries = 1; ; tries++) {
    const backoffMs = chooseBackoff(tries);
    const tried = await pacer.run(async () => {
      const result = await sendOnce(request, policy);
      // Before the next call's turn, so that it waits instead of getting a 429, too.
      if ("status" in result) pacer.postpone(readLimitWait(result, policy, backoffMs));
      return result;
    }, signal);

    if ("error" in tried) {
      if (tries - limited > retries) {
        const { origin } = new URL(request.url);
        throw new PlantStoreUnreachable(origin, tries, tried.error, idempotencyKey);
      }
      isRepeated = true;
      await pause(backoffMs, signal);
      continue;
    }

    const { status, headers } = tried;
    const isLimited = status === 429;
    if (isLimited) limited++;
    const hasTriesLeft = isLimited ? limited <= limitedRetries : tries - limited <= retries;
    const retryAfterMs = readRetryAfter(headers) ?? 0;
    const isRetried = hasTriesLeft && retriedStatuses.includes(status);
    if (!isRetried || retryAfterMs > retryAfterMsMax) {
      return { ...tried, isRepeated, idempotencyKey };
    }
    // The pacer makes a limited call wait. It is certain that it did nothing.
    if (isLimited) continue;
    isRepeated = true;
    await pause(retryAfterMs + backoffMs, signal);
  }
}

/** With jitter: clients that failed together shouldn't come back together. */
function chooseBackoff(tries: number): number {
  const stepMs = Math.min(pauseMsMax, pauseMsFirst * 2 ** (tries - 1));
  return stepMs * (0.5 + Math.random() / 2);
}

/** How long all calls have to wait for the rate limit; 0 if it leaves a request. */
function readLimitWait(
  { status, headers }: ReceivedResponse,
  { limitedRetries, retryAfterMsMax }: RetryPolicy,
  backoffMs: number,
): number {
  if (limitedRetries === 0) return 0;
  const [, seconds = 0] = /"requests";r=0;t=(\d+)/.exec(headers.get("ratelimit") ?? "") ?? [];
  const resetMs = Number(seconds) * 1_000;
  const retryAfterMs = readRetryAfter(headers) ?? 0;
  return Math.max(
    resetMs <= retryAfterMsMax ? resetMs : 0,
    status === 429 && retryAfterMs <= retryAfterMsMax ? retryAfterMs + backoffMs : 0,
  );
}

/** Returns an error if no complete response came. Throws the signal's reason once it is aborted. */
async function sendOnce(
  request: ClientRequest,
  { fetch, timeoutMs }: RetryPolicy,
): Promise<ReceivedResponse | { readonly error: unknown }> {
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
    signal?.throwIfAborted();
    return { error: controller.signal.aborted ? controller.signal.reason : error };
  } finally {
    clearTimeout(timer);
    unwatch();
  }
}

export async function pause(durationMs: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const elapsed = new Promise((resolve) => {
    timer = setTimeout(resolve, durationMs);
  });
  await untilSettled(elapsed, signal).finally(() => clearTimeout(timer));
}

/** Throws the signal's reason once it is aborted. */
async function untilSettled(
  promise: Promise<unknown>,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  let unwatch = () => {};
  const aborted = new Promise<never>((_, reject) => {
    unwatch = watch(signal, () => reject(signal?.reason));
  });
  await Promise.race([promise, aborted]).finally(unwatch);
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
