/**
 * One request, tried until an answer stands. It knows of time, failures and retries, not of plants.
 */
import { PlantStoreProblem, PlantStoreUnreachable } from "./problem-error.ts";
import type { Problem } from "./wire-types.ts";

export interface Exchange {
  readonly address: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body?: string | undefined;
  /** Whether a runtime may repeat it in silence, on a connection that turns out to be closed. */
  readonly isRepeatable: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface Patience {
  readonly fetch: (address: string, init: RequestInit) => Promise<Response>;
  /** Further tries after those that failed. */
  readonly retries: number;
  /** Further tries after those that came too soon for a rate limit. */
  readonly limitedRetries: number;
  /** For each try, to the last byte of its answer. */
  readonly timeoutMs: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Whether an earlier try may have been carried out although its answer was lost. */
  readonly isRepeated: boolean;
}

/** The service or something before it is busy, restarting or cut off: all of these pass. */
const passingStatuses: readonly number[] = [429, 502, 503, 504];
const pauseMsFirst = 100;
const pauseMsMax = 10_000;
/** Whoever asks for more patience than this is told to the caller instead. */
const retryAfterMsMax = 60_000;

/**
 * The first answer that is not one to wait out, or the last. Fails with `PlantStoreUnreachable` if
 * there is none, and with the signal's reason once it is aborted.
 */
export async function exchange(wish: Exchange, patience: Patience): Promise<Answer> {
  let isRepeated = false;
  let limited = 0;
  for (let tries = 1; ; tries++) {
    let askedMs = 0;
    try {
      const answer = await tryOnce(wish, patience);
      askedMs = readRetryAfter(answer.headers) ?? 0;
      const isLimited = answer.status === 429;
      if (isLimited) limited++;
      const hasPatience = isLimited
        ? limited <= patience.limitedRetries
        : tries - limited <= patience.retries;
      const isWaitedOut = hasPatience && askedMs <= retryAfterMsMax;
      if (!isWaitedOut || !passingStatuses.includes(answer.status))
        return { ...answer, isRepeated };
      // Only a 429 says for certain that nothing was done.
      isRepeated ||= !isLimited;
    } catch (error) {
      wish.signal?.throwIfAborted();
      const hasPatience = tries - limited <= patience.retries;
      if (!hasPatience) throw toUnreachable(wish, tries, error);
      isRepeated = true;
    }
    const stepMs = Math.min(pauseMsMax, pauseMsFirst * 2 ** (tries - 1));
    // Clients that failed together must not come back together.
    await pause(askedMs + stepMs * (0.5 + Math.random() / 2), wish.signal);
  }
}

function toUnreachable({ address }: Exchange, tries: number, error: unknown) {
  return new PlantStoreUnreachable(new URL(address).origin, tries, error);
}

async function tryOnce(wish: Exchange, { fetch, timeoutMs }: Patience) {
  const { address, method, headers, body = null, signal } = wish;
  signal?.throwIfAborted();
  const controller = new AbortController();
  const giveUp = () => controller.abort(new Error(`nothing came within ${timeoutMs} ms`));
  const timer = setTimeout(giveUp, timeoutMs);
  const unwatch = watch(signal, () => controller.abort(signal?.reason));
  try {
    const response = await fetch(address, {
      ...{ method, headers, body, signal: controller.signal },
      // The token is for this address only.
      redirect: "manual",
      // Bun sends GET and DELETE again by itself when a connection that it kept breaks.
      ...(!wish.isRepeatable && { keepalive: false }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
    unwatch();
  }
}

async function pause(durationMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      unwatch();
      resolve();
    }, durationMs);
    const unwatch = watch(signal, () => {
      clearTimeout(timer);
      reject(signal?.reason);
    });
  });
}

/**
 * One listener for all calls that share a signal: Node warns of a leak when there are more than
 * ten.
 */
const watchers = new WeakMap<AbortSignal, Set<() => void>>();

/** Hands back what ends the watch. */
function watch(signal: AbortSignal | undefined, act: () => void): () => void {
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

/** Seconds or a date (RFC 9110). */
function readRetryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  if (text === null) return undefined;
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs);
}

const problemTypeStart = "urn:plantstore:problem:";

/** Empty if it is not one of the service's: proxies answer with problems of their own, too. */
function readProblem(text: string): Partial<Problem> {
  try {
    const problem: Partial<Problem> = JSON.parse(text);
    const { type, detail, errors = [] } = problem;
    const isOurs = type?.startsWith(problemTypeStart) && typeof detail === "string";
    return isOurs && errors.every((each) => typeof each.detail === "string") ? problem : {};
  } catch {
    return {};
  }
}

/** An answer that is a refusal, as the error to throw. */
export function toProblem({ status, headers, text }: Answer): PlantStoreProblem {
  const isProblem = headers.get("content-type")?.startsWith("application/problem+json");
  const requestId = headers.get("x-request-id") ?? undefined;
  return new PlantStoreProblem(status, isProblem ? readProblem(text) : {}, {
    requestId,
    retryAfterMs: readRetryAfter(headers),
  });
}
