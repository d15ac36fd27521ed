/** The headers that all responses share: CORS, caching, and the limits of the caller. */
import type { RateLimiter, UsageLimits } from "../limits/rate-limiter.ts";
import type { Route } from "./router.ts";

const exposed = [
  "Location",
  "Link",
  "X-Request-Id",
  "ETag",
  "Idempotency-Replayed",
  "Retry-After",
  "RateLimit",
  "RateLimit-Policy",
  "WWW-Authenticate",
].join(", ");

const preflightSeconds = 86_400;

/** `"*"`, or the origins whose pages may call the service. */
export type AllowedOrigins = "*" | readonly string[];

/**
 * No cache may store a private response: it depends on the caller, or soon isn't true. A probe's is
 * for monitoring, so no page of another origin may read it.
 */
export type Visibility = "private" | "public" | "probe";

/** The headers of a response with this content type to a request with these headers. */
type SharedHeaders = (
  visibility: Visibility,
  contentType: string | undefined,
  request: Headers,
) => Headers;

/** Without `includeSubDomains`: the other hosts of the domain aren't ours. */
const strictTransport = "max-age=31536000";

function createSharedHeaders(allowed: AllowedOrigins, isSecure: boolean): SharedHeaders {
  const make = (visibility: Visibility, contentType: string | undefined, origin?: string) => {
    const headers = new Headers({ "X-Content-Type-Options": "nosniff" });
    if (isSecure) headers.set("Strict-Transport-Security", strictTransport);
    if (contentType !== undefined) headers.set("Content-Type", contentType);
    if (visibility === "private") headers.set("Cache-Control", "no-store");
    if (visibility === "probe") return headers;
    if (allowed !== "*") headers.set("Vary", "Origin");
    if (origin !== undefined) {
      headers.set("Access-Control-Allow-Origin", origin);
      headers.set("Access-Control-Expose-Headers", exposed);
    }
    return headers;
  };
  if (allowed !== "*") {
    return (visibility, contentType, request) => {
      const origin = request.get("origin");
      const isAllowed = origin !== null && allowed.includes(origin);
      return make(visibility, contentType, isAllowed ? origin : undefined);
    };
  }
  // There are few kinds, and `Headers` makes a response in half the time of a plain object.
  const ready = {
    private: new Map<string | undefined, Headers>(),
    public: new Map<string | undefined, Headers>(),
    probe: new Map<string | undefined, Headers>(),
  };
  return (visibility, contentType) => {
    let headers = ready[visibility].get(contentType);
    if (!headers) {
      headers = make(visibility, contentType, "*");
      ready[visibility].set(contentType, headers);
    }
    return headers;
  };
}

/** For the request that a browser sends first when a page of another origin calls. */
export function preflightHeaders({ allow, acceptPatch }: Route): Record<string, string> {
  return {
    Allow: allow,
    ...(acceptPatch && { "Accept-Patch": acceptPatch }),
    "Access-Control-Allow-Methods": allow,
    "Access-Control-Allow-Headers":
      "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, " +
      "X-Request-Id, traceparent, tracestate",
    "Access-Control-Max-Age": String(preflightSeconds),
  };
}

/** `RateLimit` of a full garden. For others, counting the room on every response costs too much. */
export const noPlantsLeft = '"plants";r=0';

/** Sets the headers; `level` is what the rate limiter found, if there is one. */
type SetLimitHeaders = (headers: Headers, level: number | undefined) => void;

/** The IETF draft of RateLimit fields (version 10). Absent if nothing is limited. */
function createLimitHeaders(
  { rate, plantsMax }: UsageLimits,
  limiter: RateLimiter | undefined,
): SetLimitHeaders | undefined {
  const policies: string[] = [];
  if (rate) policies.push(`"requests";q=${rate.requests};w=${rate.windowSeconds}`);
  if (plantsMax !== undefined) policies.push(`"plants";q=${plantsMax};qu="plants"`);
  if (policies.length === 0) return undefined;
  const policy = policies.join(", ");
  return (headers, level) => {
    headers.set("RateLimit-Policy", policy);
    if (!limiter || level === undefined) return;
    const { remaining, nextSeconds } = limiter.allowance(level);
    headers.append("RateLimit", `"requests";r=${remaining};t=${nextSeconds}`);
  };
}

export interface ResponseHeaders {
  readonly shared: SharedHeaders;
  /** Whether they differ for pages of different origins. */
  readonly dependOnOrigin: boolean;
  /** Absent if nothing is limited. */
  readonly setLimits: SetLimitHeaders | undefined;
}

export function createResponseHeaders(options: {
  readonly allowedOrigins: AllowedOrigins;
  /** Whether the service itself speaks TLS. */
  readonly isSecure: boolean;
  readonly usage: UsageLimits;
  readonly limiter: RateLimiter | undefined;
}): ResponseHeaders {
  const { allowedOrigins, isSecure, usage, limiter } = options;
  return {
    shared: createSharedHeaders(allowedOrigins, isSecure),
    dependOnOrigin: allowedOrigins !== "*",
    setLimits: createLimitHeaders(usage, limiter),
  };
}
