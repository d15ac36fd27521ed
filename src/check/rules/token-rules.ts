/** Tokens: who gets in, what a refusal shows, and what a token that may only read may do. */
import type { Answer } from "../answer.ts";
import { expectHeader, expectStatus, expectThat } from "../expectation.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";

const challenge = 'Bearer realm="plants"';
const invalid = `${challenge}, error="invalid_token"`;
const insufficient = `${challenge}, error="insufficient_scope", scope="write"`;

const malformed = "plant_short";
const unknown = `plant_${"0".repeat(49)}`;

function authorized(probe: Probe, authorization: string, request = "GET /plants?limit=1") {
  const headers = { Authorization: authorization, "X-Request-Id": "check" };
  return probe.askOpenly(request, { headers });
}

function expectRefused(answer: Answer, expected: string): void {
  expectStatus(answer, 401);
  expectHeader(answer, "WWW-Authenticate", expected);
}

/**
 * The last but one is a checksum's or a signature's, the first ones a random part's: either way it
 * is another token. Of the last one of a JWT, some bits count for nothing.
 */
function alter(token: string, at: number): string {
  const index = at < 0 ? token.length + at : at;
  const other = token[index] === "a" ? "b" : "a";
  return token.slice(0, index) + other + token.slice(index + 1);
}

export const tokenRules = rulesOf("tokens", {
  "every operation without a token is 401": async (probe) => {
    const id = probe.freshId();
    for (const request of ["GET /plants", "HEAD /plants", "POST /plants", `DELETE /plants/${id}`]) {
      expectStatus(await probe.askOpenly(request), 401);
    }
  },
  "401 without a token challenges with the realm, and without an error": async (probe) => {
    expectRefused(await probe.askOpenly("GET /plants"), challenge);
  },
  "401 with a token says invalid_token": async (probe) => {
    expectRefused(await authorized(probe, `Bearer ${unknown}`), invalid);
    expectRefused(await authorized(probe, `Bearer ${malformed}`), invalid);
  },
  "a token with one character changed is 401": async (probe) => {
    const { token } = probe.garden;
    for (const at of [-2, Math.floor(token.length / 2)]) {
      expectStatus(await authorized(probe, `Bearer ${alter(token, at)}`), 401);
    }
    expectStatus(await authorized(probe, `Bearer ${token}x`), 401);
    expectStatus(await authorized(probe, `Bearer ${token.slice(0, -1)}`), 401);
  },
  "the body of 401 is the same for an unknown and a malformed token": async (probe) => {
    const [first, second] = [
      await authorized(probe, `Bearer ${unknown}`),
      await authorized(probe, `Bearer ${malformed}`),
    ];
    expectThat(first.text === second.text, `the body must be ${first.text}`, second);
  },
  "the case of the scheme does not matter": async (probe) => {
    for (const scheme of ["Bearer", "bearer", "BEARER", "bEaReR"]) {
      expectStatus(await authorized(probe, `${scheme} ${probe.garden.token}`), 200);
    }
  },
  "another scheme is 401": async (probe) => {
    const { token } = probe.garden;
    const basic = Buffer.from(`user:${token}`).toString("base64");
    for (const text of [`Basic ${basic}`, `Token ${token}`, token]) {
      expectStatus(await authorized(probe, text), 401);
    }
  },
  "two tokens are 401": async (probe) => {
    const both = [`Bearer ${probe.garden.token}`, `Bearer ${unknown}`];
    const headers = { Authorization: both };
    expectStatus(await probe.askOpenly("GET /plants?limit=1", { headers }), 401);
  },
  "a token in the query is not read": async (probe) => {
    const { token } = probe.garden;
    expectStatus(await probe.askOpenly(`GET /plants?access_token=${token}&limit=1`), 401);
  },
  "a token in the body is not read": async (probe) => {
    const { token } = probe.garden;
    const body = { ...probe.draft("token in the body"), access_token: token };
    expectStatus(await probe.askOpenly("POST /plants", { body }), 401);
  },
  "a token that may only read may list": async ({ reader }) => {
    expectStatus(await reader.ask("GET /plants?limit=1"), 200);
    expectStatus(await reader.ask("HEAD /plants?limit=1"), 200);
  },
  "a token that may only read is 403 on a create and a delete": async (probe) => {
    const { reader } = probe;
    for (const answer of [
      await reader.ask("POST /plants", { body: probe.draft("read only") }),
      await reader.delete(probe.freshId()),
    ]) {
      expectStatus(answer, 403);
    }
  },
  "403 says insufficient_scope": async (probe) => {
    const answer = await probe.reader.delete(probe.freshId());
    expectHeader(answer, "WWW-Authenticate", insufficient);
  },
  "a create that is 403 creates nothing": async (probe) => {
    const draft = probe.draft("read only");
    const answer = await probe.reader.create(draft);
    expectThat(await probe.reader.isFree(draft.id), "the plant is there", answer);
  },
});
