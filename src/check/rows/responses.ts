/** Errors and browser clients: what holds for all problems, and for all responses. */

import type { ServiceResponse } from "../checked-service.ts";
import { errorsOf } from "../expectation.ts";
import { create, type Expected, open, plant, rowsOf, type Sent, type Step } from "../row.ts";

const post = (body: object | string, headers = {}) => ({ request: "POST /plants", body, headers });
const key = { "Idempotency-Key": "{key}" };

/** One request for every kind of response that depends on a token. */
const privateSamples: readonly (readonly [status: number, sent: Sent])[] = [
  [201, post(plant(1), key)],
  [200, { request: "GET /plants?after={before}" }],
  [200, { request: "HEAD /plants?limit=1" }],
  [400, { request: "GET /plants?limit=x" }],
  [400, post(plant(2, { name: null }))],
  [401, open("GET /plants")],
  [404, { request: "DELETE /plants/{2}" }],
  [409, post(plant(1))],
  [413, post("{", { "Content-Length": String(2 ** 20) })],
  [415, post(plant(2), { "Content-Type": "text/plain" })],
  [422, post(plant(1, { tag: "other" }), key)],
  [204, { request: "DELETE /plants/{1}" }],
];

const publicSamples: typeof privateSamples = [
  [404, open("GET /nothing-here")],
  [405, open("PUT /plants")],
  [204, open("OPTIONS /plants")],
  [200, open("GET /openapi.json")],
  [200, open("GET /healthz")],
];

/** The samples, each with its status and what else is expected. */
const every = (samples: typeof privateSamples, expected: Expected): Step[] =>
  samples.map(([status, sent]) => [sent, { status, ...expected }]);

const isText = (value: unknown) => typeof value === "string" && value.trim() !== "";

function findWrongProblem(response: ServiceResponse): string | undefined {
  const { status, title, detail, requestId } = response.json ?? {};
  if (response.status < 400) return undefined;
  const type = response.header("Content-Type") ?? "absent";
  if (!/^application\/problem\+json(?:; ?charset=utf-8)?$/i.test(type)) {
    return `Content-Type must be application/problem+json, and is ${type}`;
  }
  if (status !== response.status) return `status must be ${response.status}, and is ${status}`;
  if (!isText(title) || !isText(detail)) return "title or detail is missing";
  const id = response.header("X-Request-Id");
  return id && requestId === id ? undefined : `requestId must be ${id}, and is ${requestId}`;
}

function findWrongErrors(response: ServiceResponse): string | undefined {
  const errors = errorsOf(response);
  if (response.status !== 400) return response.json?.errors && "errors is there without 400";
  if (errors.length === 0) return "errors is missing or empty";
  const isWhole = errors.every(
    ({ pointer, parameter, header, detail }) =>
      isText(detail) && [pointer, parameter, header].filter((place) => place != null).length === 1,
  );
  return isWhole ? undefined : "an item of errors has no detail, or not one place";
}

const repeated = Array.from({ length: 150 }, (_, index) => `a${index}&a${index}`).join("&");

export const errorRows = rowsOf("errors", {
  "every refusal is a problem with type, title, status, detail and requestId": every(
    [...privateSamples, ...publicSamples],
    { check: findWrongProblem },
  ),
  "403 is such a problem, too": [
    { request: "DELETE /plants/{1}", token: "read" },
    { status: 403, check: findWrongProblem },
  ],
  "400 lists errors, each with a detail and one place": every(privateSamples, {
    check: findWrongErrors,
  }),
  "every error of a body is listed, not only the first": create(
    '{"name":"","tag":5,"id":1.5,"colour":1}',
    { errors: ["/name", "/tag", "/id", "/colour"] },
  ),
  "errors of query, headers and body are listed together": [
    {
      request: "POST /plants?colour=green",
      body: plant(1, { tag: null }),
      headers: { "Idempotency-Key": "a b" },
    },
    { errors: ["colour", "Idempotency-Key", "/tag"] },
  ],
  "errors of the query are listed also where the body is not text": [
    { request: "POST /plants?colour=green", bytes: "\xff" },
    { errors: ["colour", ""] },
  ],
  "every error of a query is listed": [
    "GET /plants?limit=x&after=y&fields=z&colour=green",
    { errors: ["limit", "after", "fields", "colour"] },
  ],
  "a pointer is a JSON Pointer": create(plant(1, { "a/b~c": 1 }), { errors: ["/a~1b~0c"] }),
  "each error is listed once, and 100 at most": [
    `GET /plants?limit=1&${repeated}`,
    {
      status: 400,
      check: (response) => {
        const errors = errorsOf(response).map((error) => JSON.stringify(error));
        if (errors.length !== 100) return `${errors.length} errors are listed`;
        return new Set(errors).size === 100 ? undefined : "an error is listed twice";
      },
    },
  ],
});

/** A service may let only some origins in, and the check does not know which. */
const skip = (response: ServiceResponse) =>
  response.items("Vary").includes("origin") &&
  response.header("Access-Control-Allow-Origin") === undefined
    ? "the service lets only some origins in"
    : undefined;

const exposed = [
  ...["Location", "Link", "X-Request-Id", "Idempotency-Replayed", "Retry-After"],
  ...["RateLimit", "RateLimit-Policy"],
];

const preflight = (method: string) => ({
  headers: {
    Origin: "https://check.example",
    "Access-Control-Request-Method": method,
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
  },
});

const all = (headers: NonNullable<Expected["headers"]>, others: Expected = {}) =>
  every([...privateSamples, ...publicSamples], { headers, ...others });

export const browserRows = rowsOf("browser clients", {
  "every response has Access-Control-Allow-Origin: *": all(
    { "Access-Control-Allow-Origin": "*" },
    { skip },
  ),
  "pages can read the headers of the interface": all(
    { "Access-Control-Expose-Headers": exposed },
    { skip },
  ),
  "a page of another origin gets its response": [
    { request: "GET /plants?limit=1", headers: { Origin: "https://check.example" } },
    { skip, headers: { "Access-Control-Allow-Origin": /^(?:\*|https:\/\/check\.example)$/ } },
  ],
  "a preflight of /plants allows its methods and headers": [
    open("OPTIONS /plants", preflight("POST")),
    {
      status: 204,
      headers: {
        "Access-Control-Allow-Methods": ["GET", "POST"],
        "Access-Control-Allow-Headers": [
          ...["Authorization", "Content-Type", "Idempotency-Key", "X-Request-Id"],
        ],
      },
    },
  ],
  "a preflight of /plants/{id} allows DELETE": [
    open("OPTIONS /plants/{1}", preflight("DELETE")),
    {
      status: 204,
      headers: {
        "Access-Control-Allow-Methods": ["DELETE"],
        "Access-Control-Allow-Headers": ["Authorization"],
      },
    },
  ],
  "every response has an X-Request-Id": all({ "X-Request-Id": /^[A-Za-z0-9._-]{1,128}$/ }),
  "every response has X-Content-Type-Options: nosniff": all({
    "X-Content-Type-Options": "nosniff",
  }),
  "there are no cookies": all({ "Set-Cookie": null }),
  "no response allows credentials": all({ "Access-Control-Allow-Credentials": null }),
  "responses that depend on a token have Cache-Control: no-store": every(privateSamples, {
    headers: { "Cache-Control": ["no-store"] },
  }),
});
