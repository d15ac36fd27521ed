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

export type Sharing = "public" | "private";

/** Makes the headers of a response; `sharing` is `private` where the answer depends on a token. */
export type SharedHeaders = (sharing: Sharing, origin: string | null) => Headers;

export function createSharedHeaders(allowed: AllowedOrigins): SharedHeaders {
  const make = (sharing: Sharing, origin?: string) => {
    const headers = new Headers({ "X-Content-Type-Options": "nosniff" });
    if (sharing === "private") headers.set("Cache-Control", "no-store");
    if (allowed !== "*") headers.set("Vary", "Origin");
    if (origin !== undefined) {
      headers.set("Access-Control-Allow-Origin", origin);
      headers.set("Access-Control-Expose-Headers", exposed);
    }
    return headers;
  };
  if (allowed === "*") {
    const ready = { public: make("public", "*"), private: make("private", "*") };
    return (sharing) => ready[sharing];
  }
  return (sharing, origin) =>
    make(sharing, origin !== null && allowed.includes(origin) ? origin : undefined);
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
