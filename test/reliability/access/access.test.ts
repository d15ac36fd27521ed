/** Every operation with every kind of credential in two gardens: status, and what it reveals. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { operations } from "../../../src/http/operations.ts";
import { startIssuer } from "../../openid-issuer.ts";
import { engines, openWorld } from "../../scenarios/scenario.ts";
import { type Credential, makeCredentials, type Standing } from "./credentials.ts";

setDefaultTimeout(120_000);

const issuer = startIssuer();
afterAll(() => issuer.stop());

const gardens = ["north", "south"] as const;
/** Each garden has one plant, which the other one must not see. */
const ownIds = { north: 1, south: 2 } as const;
const othersIds = { north: 2, south: 1 } as const;

interface Operation {
  readonly request: string;
  readonly body?: string;
  readonly scope: "read" | "write" | "none";
  readonly status: number;
}

/** After these, in this order, the garden is as before. */
function operationsIn(garden: (typeof gardens)[number]): Operation[] {
  const othersId = othersIds[garden];
  return [
    { request: "GET /plants", scope: "read", status: 200 },
    { request: "HEAD /plants", scope: "read", status: 200 },
    { request: "GET /plants?limit=x", scope: "read", status: 400 },
    { request: "GET /me", scope: "read", status: 200 },
    { request: `GET /plants/${othersId}`, scope: "read", status: 404 },
    { request: "GET /plants/99", scope: "read", status: 404 },
    { request: `DELETE /plants/${othersId}`, scope: "write", status: 404 },
    { request: "DELETE /plants/99", scope: "write", status: 404 },
    { request: "DELETE /plants/x", scope: "write", status: 400 },
    { request: "POST /plants", body: "{}", scope: "write", status: 400 },
    {
      request: "POST /plants",
      body: `{"name":"Fern","id":${othersId}}`,
      scope: "write",
      status: 201,
    },
    // With the type of a single create, which comes after the token and the scope.
    { request: "POST /plants/bulk", body: "{}", scope: "write", status: 415 },
    {
      request: `PUT /plants/${othersId}`,
      body: '{"name":"Fern"}',
      scope: "write",
      status: 200,
    },
    { request: `DELETE /plants/${othersId}`, scope: "write", status: 204 },
    { request: `DELETE /plants/${othersId}`, scope: "write", status: 404 },
    { request: "OPTIONS /plants", scope: "none", status: 204 },
    { request: "GET /healthz", scope: "none", status: 200 },
    { request: "GET /readyz", scope: "none", status: 200 },
    { request: "GET /metrics", scope: "none", status: 200 },
    { request: "GET /openapi.json", scope: "none", status: 200 },
    { request: "GET /nothing", scope: "none", status: 404 },
    { request: "PUT /plants", scope: "none", status: 405 },
  ];
}

test("every operation is covered", () => {
  const tried = operationsIn("north").map(({ request }) => request);
  const all = operations.map(({ method, path }) => `${method} ${path}`);
  expect(tried.map((line) => line.replace(/\d+$/, "{id}"))).toEqual(expect.arrayContaining(all));
});

function expectedStatus({ scope, status }: Operation, standing: Standing): number {
  if (scope === "none" || standing === "write") return status;
  if (standing === "read") return scope === "read" ? status : 403;
  return standing === "undecided" ? 503 : 401;
}

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine, { jwt: issuer.trust });
  const credentials: Record<string, Credential[]> = {};
  /** Different responses, by what they may depend on. */
  const shown = new Map<string, Set<string>>();

  beforeAll(async () => {
    for (const garden of gardens) {
      credentials[garden] = await makeCredentials(world.storage, issuer, garden);
      const plant = { name: garden, tag: "", idempotency: undefined, id: BigInt(ownIds[garden]) };
      await world.storage.apply([{ kind: "create", garden, ...plant }]);
    }
    await world.assembly.authenticator.refresh();
    await world.assembly.jwts?.keys.refresh();
  });

  async function call({ authorization }: Credential, { request, body }: Operation) {
    const headers = new Headers({ "x-request-id": "same", "content-type": "application/json" });
    if (authorization !== undefined) headers.set("authorization", authorization);
    return world.fetch(request, body === undefined ? { headers } : { headers, body });
  }

  test.each(gardens)(
    "every credential for the garden %s gets the right statuses",
    async (garden) => {
      const seen: string[] = [];
      const expected: string[] = [];
      for (const credential of credentials[garden] ?? []) {
        // An unknown key is undecided only for 10 s after the keys were fetched. Fetching them
        // fails if that was a moment ago.
        const { jwts } = world.assembly;
        if (credential.standing === "undecided") await jwts?.keys.refresh().catch(() => {});
        for (const operation of operationsIn(garden)) {
          const { request, scope } = operation;
          const response = await call(credential, operation);
          const text = await response.text();
          const what = `${credential.name}: ${request}:`;
          seen.push(`${what} ${response.status}`);
          expected.push(`${what} ${expectedStatus(operation, credential.standing)}`);
          if (response.status === 200 && request === "GET /plants") {
            expect(JSON.parse(text)).toEqual([{ name: garden, tag: "" }]);
          }
          const isHead = request.startsWith("HEAD");
          const likeness = likenessOf(response.status, request, scope, credential.standing);
          response.headers.delete("date");
          const answer = JSON.stringify([[...response.headers], isHead ? "" : text]);
          if (likeness) shown.set(likeness, (shown.get(likeness) ?? new Set()).add(answer));
        }
      }
      expect(seen).toEqual(expected);
    },
  );

  /** What a response may depend on; undefined if it shows the garden's plants. */
  function likenessOf(status: number, request: string, scope: string, standing: Standing) {
    const body = request.startsWith("HEAD") ? " without a body" : "";
    // It counts every request.
    if (request === "GET /metrics") return undefined;
    if (scope === "none") return `${request} for anybody`;
    if (status === 401) return `401 ${standing}${body}`;
    if (status === 403 || status === 404) return `${status}${body}`;
    return undefined;
  }

  test("refusals, missing plants and public pages reveal nothing about the credential", () => {
    const differing = [...shown].filter(([, answers]) => answers.size > 1);
    expect(differing.map(([likeness, answers]) => [likeness, ...answers])).toEqual([]);
    const kinds = ["401 none", "401 refused", "401 refused without a body", "403", "404"];
    expect([...shown.keys()]).toEqual(expect.arrayContaining(kinds));
  });

  test("both gardens are as before", async () => {
    for (const garden of gardens) {
      const plants = await world.storage.list(garden, undefined, 10);
      expect(plants.map(({ id, name }) => [id, name])).toEqual([[BigInt(ownIds[garden]), garden]]);
    }
  });

  test("an idempotency key of one garden is unused in the other", async () => {
    const headers = { "content-type": "application/json", "idempotency-key": "shared" };
    for (const garden of gardens) {
      const writer = credentials[garden]?.find(({ standing }) => standing === "write");
      const response = await world.fetch("POST /plants", {
        headers: { ...headers, authorization: writer?.authorization ?? "" },
        body: '{"name":"Moss"}',
      });
      expect(response.status).toBe(201);
      expect(response.headers.get("idempotency-replayed")).toBeNull();
    }
  });
});
