/** Tokens: who gets in, what a refusal shows, and what a token that may only read may do. */
import { each, list, open, plant, rowsOf } from "../row.ts";

const realm = 'Bearer realm="plants"';
const without = { status: 401, headers: { "WWW-Authenticate": realm } };
const invalid = {
  status: 401,
  headers: { "WWW-Authenticate": `${realm}, error="invalid_token"` },
};
const insufficient = {
  status: 403,
  headers: { "WWW-Authenticate": `${realm}, error="insufficient_scope", scope="write"` },
};
const operations = ["GET /plants", "HEAD /plants", "POST /plants", "DELETE /plants/{1}"];
const unknown = `plant_${"0".repeat(49)}`;
const authorized = (authorization: string, request = "GET /plants?limit=1") =>
  open(request, { headers: { Authorization: authorization, "X-Request-Id": "check" } });

export const tokenRows = rowsOf("tokens", {
  "every operation without a token is 401, without an error in the challenge": each(operations, [
    open("{each}"),
    without,
  ]),
  "another scheme is 401, as without a token": each(
    ["Basic {token}", "Token {token}", "{token}", "Bearer", "Bearer{token}", "x Bearer {token}"],
    [authorized("{each}"), without],
  ),
  "every operation with an unknown token is 401 invalid_token": each(operations, [
    authorized(`Bearer ${unknown}`, "{each}"),
    invalid,
  ]),
  "a malformed token is 401 invalid_token": each(
    ["plant_short", "garbage", "a.b.c", `${unknown} x`, "x".repeat(8_000)],
    [authorized("Bearer {each}"), invalid],
  ),
  "a token with one character changed, added or missing is 401 invalid_token": each(
    ["{token-mid}", "{token-end}", "{token}x", "{token-cut}"],
    [authorized("Bearer {each}"), invalid],
  ),
  "the body of 401 is the same for an unknown and a malformed token": [
    [authorized(`Bearer ${unknown}`), 401],
    [authorized("Bearer plant_short"), { status: 401, same: ["body"] }],
  ],
  "more than one space may follow the scheme": [authorized("Bearer    {token}"), 200],
  "the case of the scheme does not matter": each(
    ["Bearer", "bearer", "BEARER", "bEaReR"],
    [authorized("{each} {token}"), 200],
  ),
  "two tokens are 401": [
    open("GET /plants?limit=1", {
      headers: { Authorization: ["Bearer {token}", `Bearer ${unknown}`] },
    }),
    401,
  ],
  "a token in the query is not read": [open("GET /plants?access_token={token}&limit=1"), 401],
  "a token in the body is not read": [
    open("POST /plants", { body: plant(1, { access_token: "{token}" }) }),
    401,
  ],
  "a token that may only read may list": [
    [{ request: "GET /plants?limit=1", token: "read" }, 200],
    [{ request: "HEAD /plants?limit=1", token: "read" }, 200],
  ],
  "a token that may only read is 403 on a create and a delete": [
    [{ request: "POST /plants", token: "read", body: plant(1) }, insufficient],
    [{ request: "DELETE /plants/{1}", token: "read" }, insufficient],
  ],
  "a create that is 403 creates nothing": [
    [{ request: "POST /plants", token: "read", body: plant(1) }, 403],
    [{ request: "GET /plants?after={before}", token: "read" }, { json: [] }],
    list("", []),
  ],
});
