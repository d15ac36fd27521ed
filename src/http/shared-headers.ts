/** The headers that all responses share, and who may read them in a browser (CORS). */

const exposed = [
  "Location",
  "Link",
  "X-Request-Id",
  "Idempotency-Replayed",
  "Retry-After",
  "RateLimit",
  "RateLimit-Policy",
].join(", ");

const preflightSeconds = 86_400;

/** `"*"`, or the origins whose pages may call the service. */
export type AllowedOrigins = "*" | readonly string[];

/** Whether an answer depends on who asks; then nobody on the way may keep it. */
export type Dependence = "on-token" | "on-nothing";

/** The headers of a response with this content type to a request with these headers. */
export type SharedHeaders = (
  dependence: Dependence,
  contentType: string | undefined,
  request: Headers,
) => Headers;

export function createSharedHeaders(allowed: AllowedOrigins): SharedHeaders {
  const make = (dependence: Dependence, contentType: string | undefined, origin?: string) => {
    const headers = new Headers({ "X-Content-Type-Options": "nosniff" });
    if (contentType !== undefined) headers.set("Content-Type", contentType);
    if (dependence === "on-token") headers.set("Cache-Control", "no-store");
    if (allowed !== "*") headers.set("Vary", "Origin");
    if (origin !== undefined) {
      headers.set("Access-Control-Allow-Origin", origin);
      headers.set("Access-Control-Expose-Headers", exposed);
    }
    return headers;
  };
  if (allowed !== "*") {
    return (dependence, contentType, request) => {
      const origin = request.get("origin");
      const isAllowed = origin !== null && allowed.includes(origin);
      return make(dependence, contentType, isAllowed ? origin : undefined);
    };
  }
  // There are few kinds, and a ready `Headers` makes a response in half the time of a plain object.
  const ready = new Map<string, Headers>();
  return (dependence, contentType) => {
    const kind = contentType === undefined ? dependence : dependence + contentType;
    let headers = ready.get(kind);
    if (!headers) {
      headers = make(dependence, contentType, "*");
      ready.set(kind, headers);
    }
    return headers;
  };
}

/** What a browser asks before it sends a request from another origin. */
export function preflightHeaders(allow: string): Record<string, string> {
  return {
    Allow: allow,
    "Access-Control-Allow-Methods": allow,
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, X-Request-Id",
    "Access-Control-Max-Age": String(preflightSeconds),
  };
}
