/** Sends a request, with timeouts and retries. It knows nothing about plants. */
import { PlantStoreUnreachable, readRetryAfter } from "./problem-error.ts";
import type { PlantStoreOptions } from "./types.ts";

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

export type RetryPolicy = Required<
  Pick<PlantStoreOptions, "fetch" | "retries" | "limitedRetries" | "retryAfterMsMax" | "timeoutMs">
>;

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

/**
 * Returns the first response that isn't worth a retry, or the last one. Throws
 * `PlantStoreUnreachable` if none came, and the signal's reason once it is aborted.
 */
export async function send(request: ClientRequest, policy: RetryPolicy): Promise<ClientResponse> {
  const { idempotencyKey, signal } = request;
  const { retries, limitedRetries, retryAfterMsMax } = policy;
  let isRepeated = false;
  let limited = 0;
  for (let tries = 1; ; tries++) {
    const backoffMs = chooseBackoff(tries);
    const tried = await sendOnce(request, policy);
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
    // It is certain that a limited call did nothing.
    if (!isLimited) isRepeated = true;
    await pause(retryAfterMs + backoffMs, signal);
  }
}

/** With jitter: clients that failed together shouldn't come back together. */
function chooseBackoff(tries: number): number {
  const stepMs = Math.min(pauseMsMax, pauseMsFirst * 2 ** (tries - 1));
  return stepMs * (0.5 + Math.random() / 2);
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

/** Throws the signal's reason once it is aborted. */
export async function pause(durationMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let unwatch = () => {};
  await new Promise<void>((resolve, reject) => {
    timer = setTimeout(resolve, durationMs);
    unwatch = watch(signal, () => reject(signal?.reason));
  }).finally(() => {
    clearTimeout(timer);
    unwatch();
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
