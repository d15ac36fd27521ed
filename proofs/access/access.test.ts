/** Every operation with every kind of credential in two gardens: status, and what it reveals. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { operations } from "../../src/http/operations.ts";
import { engines, openService } from "../../test/contract/garden.ts";
import { startIssuer } from "../../test/openid-issuer.ts";
import { create } from "../../test/storage/tested-storage.ts";
import { type Credential, makeCredentials, type Standing } from "./credentials.ts";

setDefaultTimeout(120_000);

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
  ["GET /tags?limit=x", "read", 400],
  ["GET /me", "read", 200],
  ["GET /events", "read", 200],
  ["GET /events?after=x", "read", 400],
  ["GET /plants/OTHER", "read", 404],
  ["GET /plants/99", "read", 404],
  ["DELETE /plants/OTHER", "write", 404],
  ["DELETE /plants/99", "write", 404],
  ["DELETE /plants/x", "write", 400],
  ["POST /plants {}", "write", 400],
  ['POST /plants {"name":"Fern","id":OTHER}', "write", 201],
  ["POST /plants/bulk {}", "write", 400],
  ['POST /plants/bulk-delete {"ids":[]}', "write", 400],
  ['POST /plants/bulk-delete {"ids":[99]}', "write", 200],
  ['PUT /plants/OTHER {"name":"Fern"}', "write", 200],
  ["DELETE /plants/OTHER", "write", 204],
  ["DELETE /plants/OTHER", "write", 404],
  ["OPTIONS /plants", "none", 204],
  ["GET /healthz", "none", 200],
  ["GET /readyz", "none", 200],
  ["GET /metrics", "none", 200],
  ["GET /openapi.json", "none", 200],
  ["GET /nothing", "none", 404],
  ["PUT /plants", "none", 405],
];

test("every operation is covered", () => {
  const tried = requests.map(([request]) => request.split(" ").slice(0, 2).join(" "));
  const all = operations.map(({ method, path }) => `${method} ${path.replace("{id}", "OTHER")}`);
  expect(tried).toEqual(expect.arrayContaining(all));
});

function expectedStatus([, needs, status]: Asked, standing: Standing): number {
  if (needs === "none" || standing === "write") return status;
  if (standing === "read") return needs === "read" ? status : 403;
  return 401;
}

/** What a response may depend on; undefined if it shows plants or counts requests. */
function likenessOf([request, needs]: Asked, status: number, standing: Standing) {
  const withBody = request.startsWith("HEAD") ? " without a body" : "";
  if (request === "GET /metrics") return undefined;
  if (needs === "none") return `${request} for anybody`;
  if (status === 401) return `401 ${standing}${withBody}`;
  return status === 403 || status === 404 ? `${status}${withBody}` : undefined;
}

describe.each(engines)("on %s", (engine) => {
  const service = openService(engine, { jwt: issuer.trust });
  const credentials: Partial<Record<GardenName, Credential[]>> = {};

  beforeAll(async () => {
    for (const name of names) {
      credentials[name] = await makeCredentials(service.storage, issuer, name);
      const id = BigInt(gardens[name].own);
      await service.storage.apply([create({ garden: name, name, id })]);
    }
    await service.assembly.authenticator.refresh();
    await service.assembly.jwts?.keys.refresh();
  });

  function send({ authorization }: Credential, request: string, others: HeadersInit = {}) {
    const [method, path, body] = request.split(" ");
    const headers = new Headers({ "content-type": "application/json", ...others });
    if (authorization !== "") headers.set("authorization", authorization);
    return service.fetch(`${method} ${path}`, body === undefined ? { headers } : { headers, body });
  }

  test("every credential gets the right statuses, and nothing that reveals more", async () => {
    const seen: string[] = [];
    const expected: string[] = [];
    const shown = new Map<string, Set<string>>();
    for (const name of names) {
      for (const credential of credentials[name] ?? []) {
        const { standing } = credential;
        for (const asked of requests) {
          const request = asked[0].replace("OTHER", String(gardens[name].other));
          const response = await send(credential, request, { "x-request-id": "same" });
          const { status, headers } = response;
          const text = await response.text();
          const what = `${name}, ${credential.name}: ${request}:`;
          seen.push(`${what} ${status}`);
          expected.push(`${what} ${expectedStatus(asked, standing)}`);
          if (status === 200 && request === "GET /plants") {
            expect(JSON.parse(text)).toEqual([{ name, tag: "" }]);
          }
          if (status === 200 && request === "GET /tags") {
            expect(JSON.parse(text)).toEqual([{ tag: "", plants: 1 }]);
          }
          if (status === 200 && request === "GET /events") {
            expect(text).not.toContain(names.find((other) => other !== name) as string);
          }
          const likeness = likenessOf(asked, status, standing);
          headers.delete("date");
          const answer = JSON.stringify([[...headers], text]);
          if (likeness) shown.set(likeness, (shown.get(likeness) ?? new Set()).add(answer));
        }
      }
      const plants = await service.storage.list(name, undefined, 10);
      expect(plants.map((plant) => [Number(plant.id), plant.name])).toEqual([
        [gardens[name].own, name],
      ]);
    }
    expect(seen).toEqual(expected);
    expect([...shown].filter(([, answers]) => answers.size > 1)).toEqual([]);
    const kinds = ["401 none", "401 refused", "401 refused without a body", "403", "404"];
    expect([...shown.keys()]).toEqual(expect.arrayContaining(kinds));
  });

  test("an idempotency key of one garden is unused in the other", async () => {
    for (const name of names) {
      const writer = credentials[name]?.find(({ standing }) => standing === "write") as Credential;
      const keyed = { "idempotency-key": "shared" };
      const response = await send(writer, 'POST /plants {"name":"Moss"}', keyed);
      expect(response.status).toBe(201);
      expect(response.headers.get("idempotency-replayed")).toBeNull();
    }
  });
});
