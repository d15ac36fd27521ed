/** Errors and browser clients: what holds for all problems, and for all responses. */
import {
  anonymous,
  as,
  create,
  type Expected,
  plant,
  type ResponseCheck,
  rowsOf,
  type Sent,
  type Step,
  withKey,
} from "../row.ts";

/** One request for every kind of response that depends on a token. */
const privateSamples: readonly Step[] = [
  create(plant(1), 201, withKey),
  ["GET /plants?after={before}", 200],
  ["GET /plants/{1}", 200],
  ["GET /me", 200],
  [{ request: "POST /plants/bulk", body: [plant(3)] }, 200],
  ["HEAD /plants?limit=1", 200],
  ["GET /plants?limit=x", 400],
  create(plant(2, { name: null }), 400),
  [anonymous("GET /plants"), 401],
  ["DELETE /plants/{2}", 404],
  create(plant(1), 409),
  create(plant(2), 415, { "Content-Type": "text/plain" }),
  create(plant(1, { tag: "other" }), 422, withKey),
  ["DELETE /plants/{1}", 204],
];

const samples: readonly Step[] = [
  ...privateSamples,
  [anonymous("GET /nothing-here"), 404],
  [anonymous("PUT /plants"), 405],
  [anonymous("OPTIONS /plants"), 204],
  [anonymous("GET /openapi.json"), 200],
];

/** The samples, each with its status and what else is expected. */
const every = (all: readonly Step[], expected: Expected): Step[] =>
  all.map(([sent, status]) => [sent, { status: status as number, ...expected }]);

const isText = (value: unknown) => typeof value === "string" && value.trim() !== "";

const isProblem: ResponseCheck = (response) => {
  if (response.status < 400) return undefined;
  const { status, title, detail, requestId, errors } = response.json ?? {};
  const type = response.header("Content-Type") ?? "absent";
  if (!/^application\/problem\+json(?:; ?charset=utf-8)?$/i.test(type)) {
    return `Content-Type must be application/problem+json, and is ${type}`;
  }
  if (status !== response.status) return `status must be ${response.status}, and is ${status}`;
  if (!isText(title) || !isText(detail)) return "title or detail is missing";
  const id = response.header("X-Request-Id");
  if (!id || requestId !== id) return `requestId must be ${id}, and is ${requestId}`;
  if (status !== 400) return errors && "errors is there without 400";
  const isWhole = response.errors.every(
    ({ pointer, parameter, header, detail }) =>
      isText(detail) && [pointer, parameter, header].filter((place) => place != null).length === 1,
  );
  return isWhole && errors?.length ? undefined : "errors needs items with a detail and one place";
};

const repeated = Array.from({ length: 150 }, (_, index) => `a${index}&a${index}`).join("&");

/** Probes: what monitoring asks for. Not /metrics, which a proxy may block. */
const probeSamples: readonly Step[] = [
  [anonymous("GET /healthz"), 200],
  [anonymous("HEAD /readyz"), 200],
  [anonymous("POST /readyz"), 405],
  [anonymous("GET /healthz?color=green"), 400],
];

const errorRows = rowsOf("errors", {
  "every refusal is a problem with type, title, status, detail and requestId": every(
    [...samples, ...probeSamples],
    { check: isProblem },
  ),
  "403 is such a problem, too": [
    as("read", "DELETE /plants/{1}"),
    { status: 403, check: isProblem },
  ],
  "every error of a body is listed, not only the first": create(
    '{"name":"","tag":5,"id":1.5,"color":1}',
    { errors: ["/name", "/tag", "/id", "/color"] },
  ),
  "every error of a query is listed": [
    "GET /plants?limit=x&after=y&include=z&color=green",
    { errors: ["limit", "after", "include", "color"] },
  ],
  "errors of query, headers and body are listed together": [
    {
      request: "POST /plants?color=green",
      body: plant(1, { tag: null }),
      headers: { "Idempotency-Key": "a b" },
    },
    { errors: ["color", "Idempotency-Key", "/tag"] },
  ],
  "a pointer is a JSON Pointer": create(plant(1, { "a/b~c": 1 }), { errors: ["/a~1b~0c"] }),
  "detail shows a name that reverses text or moves the cursor in its escaped form": create(
    plant(1, { "\u202eevil\u009b": 1 }),
    {
      errors: ["/\u202eevil\u009b"],
      check: ({ json }) =>
        /\p{Cc}|\p{Cf}/u.test(String(json?.detail)) ? "detail holds the characters" : undefined,
    },
  ),
  "each error is listed once, and 100 at most": [
    `GET /plants?limit=1&${repeated}`,
    {
      status: 400,
      check: ({ errors }) => {
        const different = new Set(errors.map((error) => JSON.stringify(error)));
        const isRight = errors.length === 100 && different.size === 100;
        return isRight ? undefined : `${errors.length} are listed, ${different.size} different`;
      },
    },
  ],
});

/** A service may let only some origins in, and the check does not know which. */
const skip: ResponseCheck = (response) =>
  response.items("Vary").includes("origin") &&
  response.header("Access-Control-Allow-Origin") === undefined
    ? "the service lets only some origins in"
    : undefined;

const exposed = [
  "Location",
  "Link",
  "X-Request-Id",
  "ETag",
  "Idempotency-Replayed",
  "Retry-After",
  "RateLimit",
  "RateLimit-Policy",
];

const preflight = (request: string, method: string) =>
  anonymous(request, {
    headers: {
      Origin: "https://check.example",
      "Access-Control-Request-Method": method,
      "Access-Control-Request-Headers": "authorization,content-type,idempotency-key,traceparent",
    },
  });

const allows = (methods: readonly string[], headers: readonly string[]): Expected => ({
  status: 204,
  headers: { "Access-Control-Allow-Methods": methods, "Access-Control-Allow-Headers": headers },
});

const browserRows = rowsOf("browser clients", {
  "a page of any origin can read every response, and the headers of the interface": every(samples, {
    skip,
    headers: {
      "Access-Control-Allow-Origin": "*",
      "Access-Control-Expose-Headers": exposed,
    },
  }),
  "a preflight allows the methods and headers of a path": [
    [
      preflight("OPTIONS /plants", "POST"),
      allows(["GET", "POST"], ["Authorization", "Content-Type", "Idempotency-Key", "X-Request-Id"]),
    ],
    [
      preflight("OPTIONS /plants/{1}", "PUT"),
      allows(["GET", "PUT", "DELETE"], ["Authorization", "If-Match", "If-None-Match"]),
    ],
    [
      preflight("OPTIONS /me", "GET"),
      allows(["GET"], ["Authorization", "Last-Event-ID", "traceparent", "tracestate"]),
    ],
  ],
  "no page of another origin can read the health paths": every(
    probeSamples.map(([sent, status]) => [
      { ...(sent as Sent), headers: { Origin: "https://check.example" } },
      status,
    ]),
    { headers: { "Access-Control-Allow-Origin": null, "Access-Control-Expose-Headers": null } },
  ),
  "every response has an X-Request-Id and nosniff, and none sets a cookie": every(
    [...samples, ...probeSamples],
    {
      headers: {
        "X-Request-Id": /^[A-Za-z0-9._-]{1,128}$/,
        "X-Content-Type-Options": "nosniff",
        "Set-Cookie": null,
        "Access-Control-Allow-Credentials": null,
      },
    },
  ),
  "responses that depend on a token have Cache-Control: no-store": every(privateSamples, {
    headers: { "Cache-Control": ["no-store"] },
  }),
});

export const rows = [...errorRows, ...browserRows];
