/** Every operation with every kind of credential in two gardens: status, and what it reveals. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { issueToken, makeToken, type NewToken } from "../src/auth/opaque-token.ts";
import { operations } from "../src/http/operations.ts";
import type { Storage } from "../src/storage/storage.ts";
import { sign, startIssuer } from "./openid-issuer.ts";
import { engines, openWorld } from "./scenarios/scenario.ts";
import { create } from "./storage/tested-storage.ts";

const issuer = startIssuer();
afterAll(() => issuer.stop());

/** Each garden has one plant, which the other one must not see. */
const gardens = { north: { own: 1, other: 2 }, south: { own: 2, other: 1 } } as const;
type GardenName = keyof typeof gardens;
const names = Object.keys(gardens) as GardenName[];

type Asked = readonly [request: string, needs: "read" | "write" | "none", status: number];

/** After these, in this order, the garden is as before. `OTHER` is the plant of the other one. */
const requests: readonly Asked[] = [
  ["GET /plants", "read", 200],
  ["HEAD /plants", "read", 200],
  ["GET /plants?limit=x", "read", 400],
  ["GET /tags", "read", 200],
  ["GET /me", "read", 200],
  ["GET /events", "read", 200],
  ["GET /plants/OTHER", "read", 404],
  ["GET /plants/99", "read", 404],
  ["DELETE /plants/OTHER", "write", 404],
  ["DELETE /plants/x", "write", 400],
  ["POST /plants {}", "write", 400],
  ['POST /plants {"name":"Fern","id":OTHER}', "write", 201],
  ["POST /plants/bulk {}", "write", 400],
  ['POST /plants/bulk-delete {"ids":[99]}', "write", 200],
  ['PUT /plants/OTHER {"name":"Fern"}', "write", 200],
  ["DELETE /plants/OTHER", "write", 204],
  ["OPTIONS /plants", "none", 204],
  ["GET /healthz", "none", 200],
  ["GET /readyz", "none", 200],
  ["GET /metrics", "none", 200],
  ["GET /openapi.json", "none", 200],
  ["GET /nothing", "none", 404],
  ["PUT /plants", "none", 405],
];

/** `none`: no token was sent. `refused`: an invalid one was sent. */
type Standing = "none" | "refused" | "read" | "write";
type Credential = readonly [name: string, standing: Standing, authorization: string];

async function makeCredentials(storage: Storage, garden: string): Promise<Credential[]> {
  const issue = (wish: Partial<NewToken> = {}) =>
    issueToken(storage, { user: "someone", garden, ...wish }, Date.now());
  const [write, read, revoked] = [await issue(), await issue({ scope: "read" }), await issue()];
  const expired = await issue({ expiresAtMs: Date.now() });
  await storage.revokeToken(revoked.record.id, Date.now());
  const key = await issuer.makeKey();
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const jwt = (others: Record<string, unknown> = {}) =>
    sign(key, issuer.claims(Date.now(), { sub: garden, exp, ...others }));
  const [header, payload] = (await jwt()).split(".");
  const [, , foreignSignature] = (await jwt({ sub: "eve" })).split(".");
  const other = write.token.endsWith("0") ? "1" : "0";
  return [
    ["nothing", "none", ""],
    ["a token without a scheme", "none", write.token],
    ["another scheme", "none", `Basic ${write.token}`],
    ["two tokens", "refused", `Bearer ${write.token}, Bearer ${write.token}`],
    ["write token", "write", `Bearer ${write.token}`],
    ["read token", "read", `Bearer ${read.token}`],
    ["expired token", "refused", `Bearer ${expired.token}`],
    ["revoked token", "refused", `Bearer ${revoked.token}`],
    ["unknown token", "refused", `Bearer ${makeToken()}`],
    ["wrong checksum", "refused", `Bearer ${write.token.slice(0, -1)}${other}`],
    ["token's hash", "refused", `Bearer ${write.record.hash}`],
    ["token's id", "refused", `Bearer ${write.record.id}`],
    ["long garbage", "refused", `Bearer ${"long-garbage-".repeat(450)}`],
    ["JWT to write", "write", `Bearer ${await jwt()}`],
    ["JWT to read", "read", `Bearer ${await jwt({ scope: "read" })}`],
    ["expired JWT", "refused", `Bearer ${await jwt({ exp: 1 })}`],
    ["JWT by another issuer", "refused", `Bearer ${await jwt({ iss: "https://evil.test" })}`],
    ["another's signature", "refused", `Bearer ${header}.${payload}.${foreignSignature}`],
  ];
}

function expectedStatus([, needs, status]: Asked, standing: Standing): number {
  if (needs === "none" || standing === "write") return status;
  if (standing === "read") return needs === "read" ? status : 403;
  return 401;
}

/** Responses with the same likeness must be equal; undefined if they show plants or counts. */
function likenessOf([request, needs]: Asked, status: number, standing: Standing) {
  const withBody = request.startsWith("HEAD") ? " without a body" : "";
  if (request === "GET /metrics") return undefined;
  if (needs === "none") return `${request} for anybody`;
  if (status === 401) return `401 ${standing}${withBody}`;
  return status === 403 || status === 404 ? `${status}${withBody}` : undefined;
}

test("every operation is covered", () => {
  const tried = requests.map(([request]) => request.split(" ").slice(0, 2).join(" "));
  const all = operations.map(({ method, path }) => `${method} ${path.replace("{id}", "OTHER")}`);
  expect(tried).toEqual(expect.arrayContaining(all));
});

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine, { jwt: issuer.trust });
  const credentials: Partial<Record<GardenName, Credential[]>> = {};

  beforeAll(async () => {
    for (const name of names) {
      credentials[name] = await makeCredentials(world.storage, name);
      const id = BigInt(gardens[name].own);
      await world.storage.apply([create({ garden: name, name, id })]);
    }
    await world.assembly.authenticator.refresh();
    await world.assembly.jwts?.keys.refresh();
  });

  function send(authorization: string, request: string, others: HeadersInit = {}) {
    const [method, path, body] = request.split(" ");
    const headers = new Headers({ "content-type": "application/json", ...others });
    if (authorization !== "") headers.set("authorization", authorization);
    return world.fetch(`${method} ${path}`, body === undefined ? { headers } : { headers, body });
  }

  test.each(names)("%s: every credential gets its statuses, and sees no more", async (name) => {
    const [seen, expected]: [string[], string[]] = [[], []];
    const shown = new Map<string, Set<string>>();
    for (const [credential, standing, authorization] of credentials[name] ?? []) {
      for (const asked of requests) {
        const request = asked[0].replace("OTHER", String(gardens[name].other));
        const response = await send(authorization, request, { "x-request-id": "same" });
        const { status, headers } = response;
        const text = await response.text();
        seen.push(`${credential}: ${request}: ${status}`);
        expected.push(`${credential}: ${request}: ${expectedStatus(asked, standing)}`);
        if (status === 200 && request === "GET /plants") {
          expect(JSON.parse(text)).toEqual([{ name, tag: "" }]);
        }
        if (status === 200 && request === "GET /tags") {
          expect(JSON.parse(text)).toEqual([{ tag: "", plants: 1 }]);
        }
        if (status === 200 && request === "GET /events") {
          expect(text).not.toContain(names.find((other) => other !== name) as string);
        }
        headers.delete("date");
        const likeness = likenessOf(asked, status, standing);
        const whole = JSON.stringify([[...headers], text]);
        if (likeness) shown.set(likeness, (shown.get(likeness) ?? new Set()).add(whole));
      }
    }
    expect(seen).toEqual(expected);
    expect([...shown].filter(([, responses]) => responses.size > 1)).toEqual([]);
    const plants = await world.storage.list(name, undefined, 10);
    expect(plants.map(({ id, name }) => [Number(id), name])).toEqual([[gardens[name].own, name]]);
  });

  test("an idempotency key of one garden is unused in the other", async () => {
    for (const name of names) {
      const [, , writer = ""] =
        credentials[name]?.find(([, standing]) => standing === "write") ?? [];
      const keyed = { "idempotency-key": "shared" };
      const response = await send(writer, 'POST /plants {"name":"Moss"}', keyed);
      expect(response.status).toBe(201);
      expect(response.headers.get("idempotency-replayed")).toBeNull();
    }
  });
});
