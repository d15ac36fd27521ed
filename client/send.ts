/** Sends a request, with timeouts and retries. It knows nothing about plants. */
import { PlantStoreUnreachable, readRetryAfter } from "./problem-error.ts";
import type { PlantStoreOptions } from "./types.ts";

interface ClientRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body?: string | undefined;
  /** The key to repeat the call with. */
  readonly idempotencyKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** As in `ManyOptions`. */
  readonly stop?: AbortSignal | undefined;
  /** Whether it was sent before, and may have been carried out. */
  readonly isRepeated?: boolean | undefined;
}

export interface RetryPolicy
  extends Required<
    Pick<
      PlantStoreOptions,
      "fetch" | "retries" | "limitedRetries" | "retryAfterMsMax" | "timeoutMs" | "deadlineMs"
    >
  > {
  readonly onResponse: PlantStoreOptions["onResponse"] | undefined;
}

/** What came back from a try. */
interface ReceivedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Instead of the text: a stream of events, while it goes on. */
  readonly stream?: ReadableStream<Uint8Array> | undefined;
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

/** Timers take no more; with more, they end at once. */
const timerMsMax = 2 ** 31 - 1;

/**
 * Returns the first response that isn't worth a retry, or the last one. Throws
 * `PlantStoreUnreachable` if none came, and the reason of `signal` once it is aborted. Throws the
 * reason of `stop` only if nothing was done.
 */
export async function send(request: ClientRequest, policy: RetryPolicy): Promise<ClientResponse> {
  const { url, idempotencyKey, signal, stop } = request;
  let endMs = performance.now() + policy.deadlineMs;
  let { retries, limitedRetries } = policy;
  let { isRepeated = false } = request;
  for (let tries = 1; ; tries++) {
    if (!isRepeated) stop?.throwIfAborted();
    // Once stopped, only a response tells what the request has done.
    const leftMs = stop?.aborted ? timerMsMax : Math.max(0, endMs - performance.now());
    const timeoutMs = Math.min(policy.timeoutMs, leftMs, timerMsMax);
    const { response, error } = await sendOnce(request, { ...policy, timeoutMs });
    const isLimited = response?.status === 429;
    const retriesLeft = isLimited ? limitedRetries-- : retries--;
    const retryAfterMs = readRetryAfter(response?.headers) ?? 0;
    const pauseMs = retryAfterMs + chooseBackoff(tries);
    const isRetried = !response || retriedStatuses.includes(response.status);
    // A limited request did nothing. If it may wait without end, its deadline starts over.
    if (isLimited && retriesLeft === Number.POSITIVE_INFINITY) {
      endMs = performance.now() + pauseMs + policy.deadlineMs;
    }
    const isInTime = performance.now() + pauseMs < endMs;
    const mayRetry = (retriesLeft > 0 && isInTime) || stop?.aborted === true;
    if (!isRetried || !mayRetry || retryAfterMs > policy.retryAfterMsMax) {
      if (response) return { ...response, isRepeated, idempotencyKey };
      throw new PlantStoreUnreachable(new URL(url).origin, tries, error, idempotencyKey);
    }
    // It is certain that a limited call did nothing.
    isRepeated ||= !isLimited;
    if (isRepeated || !stop?.aborted) await pause(pauseMs, signal, stop);
  }
}

/** With jitter: clients that failed together shouldn't come back together. */
function chooseBackoff(tries: number): number {
  const stepMs = Math.min(pauseMsMax, pauseMsFirst * 2 ** (tries - 1));
  return stepMs * (0.5 + Math.random() / 2);
}

/** Returns why, if no complete response came. Throws the signal's reason once it is aborted. */
async function sendOnce(
  { url, method, headers, body, idempotencyKey, signal }: ClientRequest,
  { fetch, timeoutMs, onResponse }: RetryPolicy,
): Promise<{ readonly response?: ReceivedResponse; readonly error?: unknown }> {
  signal?.throwIfAborted();
  const late = new AbortController();
  const giveUp = () => late.abort(new Error(`no response within ${Math.round(timeoutMs)} ms`));
  const timer = setTimeout(giveUp, timeoutMs);
  // Bun resends GET and DELETE by itself when a reused connection breaks. A delete would then get
  // 404 and a conditional put 412, each because of its own first try.
  const mayRuntimeResend = method === "GET" || idempotencyKey !== undefined;
  let response: Response | undefined;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body ?? null,
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      // The token must not go anywhere else.
      redirect: "manual",
      ...(!mayRuntimeResend && { keepalive: false }),
    });
    const { status, headers: received } = response;
    const isStream = received.get("content-type")?.startsWith("text/event-stream");
    const stream = (isStream && response.body) || undefined;
    const text = stream ? "" : await response.text();
    return { response: { status, headers: received, text, stream } };
  } catch (error) {
    signal?.throwIfAborted();
    return { error: late.signal.aborted ? late.signal.reason : error };
  } finally {
    clearTimeout(timer);
    // Not where its error would be taken for a lost response.
    if (response && onResponse) {
      const { status, headers } = response;
      const requestId = headers.get("x-request-id") ?? undefined;
      onResponse({ method, url, status, headers, requestId });
    }
  }
}

/** Ends early if `stop` is aborted meanwhile. Throws the signal's reason once that is aborted. */
export async function pause(
  durationMs: number,
  signal: AbortSignal | undefined,
  stop?: AbortSignal,
): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      for (const each of [signal, stop]) each?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, durationMs);
    for (const each of [signal, stop]) each?.addEventListener("abort", end);
  });
  signal?.throwIfAborted();
}
