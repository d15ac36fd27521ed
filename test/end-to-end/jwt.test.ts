/** JWTs at a running service, and an issuer that is down or slow. */
import { afterAll, afterEach, beforeEach, expect, setSystemTime, test } from "bun:test";
import {
  audience,
  makeSigningKey,
  type SigningKey,
  sign,
  startIssuer,
} from "../../testing/openid-issuer.ts";
import { callAnew, serveHere, waitFor } from "../../testing/running-service.ts";

const issuer = startIssuer();
const key = await issuer.makeKey("ES256");
beforeEach(() => {
  issuer.respond = undefined;
  issuer.published = [key.publicJwk];
});
afterEach(() => void setSystemTime());
afterAll(() => issuer.stop());

const trust = { "jwt-issuer": issuer.url, "jwt-audience": audience };

const expiry = Math.floor(Date.now() / 1_000) + 600;
const signWith = (by: SigningKey, others: object = {}) =>
  sign(by, issuer.claims(Date.now(), { exp: expiry, ...others }));

test("an issuer that hangs or is down holds up no other tokens, and its JWTs count once it is up", async () => {
  const hanging = Promise.withResolvers<void>();
  issuer.respond = async () => {
    await hanging.promise;
    return new Response("", { status: 502 });
  };
  await using service = await serveHere(trust, { mayRefuse: true });
  const token = await signWith(key);
  const held = Array.from({ length: 200 }, () => callAnew(service, "GET /plants", { token }));
  for (let round = 0; round < 10; round++) {
    const response = await service.call(`GET /plants?limit=${round}`);
    expect(response.status).toBe(200);
  }
  hanging.resolve();
  for (const response of await Promise.all(held)) {
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await response.text()).not.toContain("127.0.0.1");
  }
  await waitFor(() => service.readLog("issuer key refresh failed")[0]);
  issuer.respond = undefined;
  // The issuer is asked again ten seconds later.
  setSystemTime(Date.now() + 10_000);
  expect((await service.call("GET /plants", { token })).status).toBe(200);
  expect(JSON.stringify(service.readLog())).not.toContain(token);
});

test("the log says why a JWT was refused, and the response doesn't; /me says when one expires", async () => {
  // By the address of its keys alone, until the service has fetched them.
  issuer.respond = (path) => (path === "/keys" ? undefined : new Response("", { status: 404 }));
  await using service = await serveHere({ ...trust, "jwt-jwks-url": `${issuer.url}/keys` });
  const good = await signWith(key);
  const ask = (token: string, request: string, headers = {}) =>
    service.call(request, { token, headers });
  expect(await (await ask(good, "GET /me")).json()).toMatchObject({
    user: "alice",
    expiresAt: new Date(expiry * 1_000).toISOString(),
  });
  const other = { ...(await makeSigningKey("ES256")), kid: key.kid };
  const refused: Record<string, string> = {
    iss: await signWith(key, { iss: "https://evil.test" }),
    exp: await signWith(key, { exp: expiry - 1_200 }),
    kid: await signWith(await makeSigningKey("ES256")),
    signature: await signWith(other),
    malformed: "a.b.c",
  };
  const bodies = new Set<string>();
  for (const [reason, token] of Object.entries(refused)) {
    const response = await ask(token, "GET /plants", { "x-request-id": `refused-${reason}` });
    expect([reason, response.status]).toEqual([reason, 401]);
    bodies.add((await response.text()).replace(`refused-${reason}`, ""));
  }
  expect(bodies.size).toBe(1);
  const logged = service.readLog("request").filter(({ status }) => status === 401);
  expect(logged.map(({ tokenError }) => tokenError)).toEqual(Object.keys(refused));
  for (const token of Object.values(refused)) {
    expect(JSON.stringify(service.readLog())).not.toContain(token);
  }
});

test("a JWT is refused if its signature has the same bytes in another spelling", async () => {
  await using service = await serveHere(trust);
  const rsa = await issuer.makeKey("RS256");
  const token = await signWith(rsa);
  expect((await service.call("GET /plants", { token })).status).toBe(200);
  // Base64url ignores the last four bits of a signature of 256 bytes.
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const next = alphabet[alphabet.indexOf(token.at(-1) ?? "") + 1];
  const respelled = token.slice(0, -1) + next;
  const response = await service.call("GET /plants", { token: respelled });
  expect(response.status).toBe(401);
  expect(service.readLog("request").at(-1)).toMatchObject({ status: 401, tokenError: "signature" });
});

test("scopes have the configured names; a JWT without any is a 403 that names what it lacks", async () => {
  const scopes = { "jwt-read-scope": "plants:read", "jwt-write-scope": "plants:write" };
  await using service = await serveHere({ ...trust, ...scopes, "jwt-scope-claim": "scp" });
  for (const [claims, status, lacking] of [
    [{ scp: ["openid", "plants:read"] }, 403, "write"],
    [{ scp: "plants:write" }, 404, undefined],
    [{ scp: "plants", scope: "write" }, 403, "write"],
  ] as const) {
    const token = await signWith(key, claims);
    const refused = await service.call("DELETE /plants/7", { token });
    const named = /scope="(\w+)"/.exec(refused.headers.get("www-authenticate") ?? "")?.[1];
    expect([claims, refused.status, named]).toEqual([claims, status, lacking]);
  }
  expect(service.readLog("request").at(-1)).toMatchObject({ status: 403, tokenError: "scope" });
});
