/** Tokens: who gets in, what a refusal shows, what a read-only token may do; who a token is. */
import { anonymous, as, create, each, list, plant, type ResponseCheck, rowsOf } from "../row.ts";

const realm = 'Bearer realm="plants"';
const challenge = (status: number, value: string) => ({
  status,
  headers: { "WWW-Authenticate": value },
});
const missing = challenge(401, realm);
const invalid = challenge(401, `${realm}, error="invalid_token"`);
const insufficient = challenge(403, `${realm}, error="insufficient_scope", scope="write"`);
const operations = [
  "GET /plants",
  "HEAD /plants",
  "POST /plants",
  "DELETE /plants/{1}",
  "GET /plants/{1}",
  "HEAD /plants/{1}",
  "GET /me",
  "HEAD /me",
  "GET /events",
];
const unknown = `plant_${"0".repeat(49)}`;
const authorized = (authorization: string | readonly string[], request = "GET /plants?limit=1") =>
  anonymous(request, { headers: { Authorization: authorization, "X-Request-Id": "check" } });

const tokenRows = rowsOf("tokens", {
  "every operation without a token is 401, without an error in the challenge": each(operations, [
    anonymous("{each}"),
    missing,
  ]),
  "another scheme is 401, as without a token": each(
    ["Basic {token}", "Token {token}", "{token}", "Bearer", "Bearer{token}", "x Bearer {token}"],
    [authorized("{each}"), missing],
  ),
  "every operation with an unknown token is 401 invalid_token": each(operations, [
    authorized(`Bearer ${unknown}`, "{each}"),
    invalid,
  ]),
  "a malformed token is 401 invalid_token, with the body of an unknown one": each(
    ["plant_short", "a.b.c", `${unknown} x`, "x".repeat(8_000), "{wrong-token}", "{token}x"],
    [authorized(`Bearer ${unknown}`), invalid],
    [authorized("Bearer {each}"), { ...invalid, same: ["body"] }],
  ),
  "the case of the scheme does not matter, nor how many spaces follow it": each(
    ["Bearer", "bearer", "BEARER", "Bearer   "],
    [authorized("{each} {token}"), 200],
  ),
  // Proxies refuse such a request themselves.
  "two tokens are refused": [
    authorized(["Bearer {token}", `Bearer ${unknown}`]),
    { status: [400, 401] },
  ],
  "a token in the query or in the body is not read": [
    [anonymous("GET /plants?access_token={token}&limit=1"), 401],
    [anonymous("POST /plants", { body: plant(1, { access_token: "{token}" }) }), 401],
  ],
  "a read-only token may list and get": [
    [as("read", "GET /plants?limit=1"), 200],
    [as("read", "HEAD /plants?limit=1"), 200],
    [as("read", "GET /plants/{1}"), 404],
  ],
  "a read-only token is 403 on a create and a delete, and nothing changes": [
    [as("read", "POST /plants", { body: plant(1) }), insufficient],
    [as("read", "POST /plants/bulk", { body: [plant(1)] }), insufficient],
    [as("read", "PUT /plants/{1}", { body: plant(1) }), insufficient],
    [as("read", "DELETE /plants/{1}"), insufficient],
    [as("read", "GET /plants?after={before}"), { json: [] }],
    list("", []),
  ],
});

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const isMe: ResponseCheck = ({ json }) => {
  const { user, garden, scope, plants, lastEvent = 0, expiresAt, ...others } = json ?? {};
  for (const [name, value] of Object.entries({ user, garden })) {
    if (typeof value !== "string" || value === "") return `${name} is ${JSON.stringify(value)}`;
  }
  if (scope !== "read" && scope !== "write") return `scope is ${JSON.stringify(scope)}`;
  for (const [name, value] of Object.entries({ plants, lastEvent })) {
    if (!Number.isSafeInteger(value) || value < 0) return `${name} is ${JSON.stringify(value)}`;
  }
  if (expiresAt !== undefined && !time.test(expiresAt)) return `expiresAt is ${expiresAt}`;
  const [other] = Object.keys(others);
  return other && `${other} must not be there`;
};
const hasScope =
  (scope: string): ResponseCheck =>
  ({ json }) =>
    json?.scope === scope ? undefined : `the scope must be ${scope}, and is ${json?.scope}`;
/** Compared with the first response of the row. */
const counts =
  (more: number): ResponseCheck =>
  ({ json }, [first]) => {
    const expected = first?.json?.plants + more;
    return json?.plants === expected
      ? undefined
      : `plants must be ${expected}, and is ${json?.plants}`;
  };
const noStore = { "Content-Type": /^application\/json\b/, "Cache-Control": ["no-store"] };

const meRows = rowsOf("me", {
  "/me shows user, garden, scope and expiry of the token, number of plants and last event": [
    ["GET /me", { headers: noStore, check: isMe }],
    ["GET /me", { check: hasScope("write") }],
    ["HEAD /me", { same: ["status", "Content-Type", "Content-Length"] }],
  ],
  "/me counts the plants of the garden": [
    ["GET /me", {}],
    create(plant(1)),
    ["GET /me", { check: counts(1) }],
    ["DELETE /plants/{1}", 204],
    ["GET /me", { check: counts(0) }],
  ],
  "/me shows that a token may only read": [as("read", "GET /me"), { check: hasScope("read") }],
});

export const rows = [...tokenRows, ...meRows];
