/** JWTs at a running service, and an issuer that is down or slow. */
import { afterAll, afterEach, beforeEach, describe, expect, setSystemTime, test } from "bun:test";
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
/** A JWT for alice's garden that expires in ten minutes, unless `claims` say otherwise. */
const makeJwt = (claims: object = {}, signedBy: SigningKey = key) =>
  sign(signedBy, issuer.claims(Date.now(), { exp: expiry, ...claims }));

describe("an issuer", () => {
  const badGateway = () => new Response("", { status: 502 });

  test("that hangs holds up no other tokens", async () => {
    const hanging = Promise.withResolvers<void>();
    issuer.respond = async () => {
      await hanging.promise;
      return badGateway();
    };
    await using service = await serveHere(trust, { mayRefuse: true });
    const jwt = await makeJwt();
    const held = Array.from({ length: 200 }, () =>
      callAnew(service, "GET /plants", { token: jwt }),
    );

    for (let limit = 0; limit < 10; limit++) {
      const response = await service.call(`GET /plants?limit=${limit}`);
      expect(response.status).toBe(200);
    }

    hanging.resolve();
    for (const response of await Promise.all(held)) {
      expect(response.status).toBe(503);
      expect(response.headers.get("retry-after")).toBe("1");
      expect(await response.text()).not.toContain("127.0.0.1");
    }
  });

  test("that was down has its JWTs accepted ten seconds after it is up", async () => {
    issuer.respond = badGateway;
    await using service = await serveHere(trust, { mayRefuse: true });
    const token = await makeJwt();
    expect((await service.call("GET /plants", { token })).status).toBe(503);
    await waitFor(() => service.readLog("issuer key refresh failed")[0]);

    issuer.respond = undefined;
    setSystemTime(Date.now() + 10_000);

    expect((await service.call("GET /plants", { token })).status).toBe(200);
    expect(JSON.stringify(service.readLog())).not.toContain(token);
  });

  test("without a discovery document is trusted by the address of its keys", async () => {
    issuer.respond = (path) => (path === "/keys" ? undefined : new Response("", { status: 404 }));
    await using service = await serveHere({ ...trust, "jwt-jwks-url": `${issuer.url}/keys` });

    const me = await service.call("GET /me", { token: await makeJwt() });

    expect(me.status).toBe(200);
  });
});

test("/me says whose a JWT is and when it expires", async () => {
  await using service = await serveHere(trust);

  const me = await service.call("GET /me", { token: await makeJwt() });

  expect(await me.json()).toMatchObject({
    user: "alice",
    expiresAt: new Date(expiry * 1_000).toISOString(),
  });
});

describe("a refused JWT", () => {
  const malformed = "a.b.c";
  const makeExpired = () => makeJwt({ exp: expiry - 1_200 });
  const makeForeign = () => makeJwt({ iss: "https://evil.test" });
  const makeUnknownKey = async () => makeJwt({}, await makeSigningKey("ES256"));
  const makeForged = async () => makeJwt({}, { ...(await makeSigningKey("ES256")), kid: key.kid });

  test.each([
    { what: "of another issuer", tokenError: "iss", makeRefused: makeForeign },
    { what: "that has expired", tokenError: "exp", makeRefused: makeExpired },
    { what: "of an unknown key", tokenError: "kid", makeRefused: makeUnknownKey },
    { what: "signed by another key", tokenError: "signature", makeRefused: makeForged },
    { what: "that isn't one", tokenError: "malformed", makeRefused: async () => malformed },
  ])("$what is logged with the reason, and without the JWT", async (refused) => {
    await using service = await serveHere(trust);
    const token = await refused.makeRefused();
    // Until the service has fetched the issuer's keys, it can't refuse a JWT by its key.
    expect((await service.call("GET /me", { token: await makeJwt() })).status).toBe(200);

    const response = await service.call("GET /plants", { token });

    expect(response.status).toBe(401);
    const line = service.readLog("request").at(-1);
    expect(line).toMatchObject({ status: 401, tokenError: refused.tokenError });
    expect(JSON.stringify(service.readLog())).not.toContain(token);
  });

  test("gets the same response, whatever the reason", async () => {
    await using service = await serveHere(trust);
    expect((await service.call("GET /me", { token: await makeJwt() })).status).toBe(200);
    const readRefusal = async (token: string) => {
      const headers = { "x-request-id": "my-request" };
      const response = await service.call("GET /plants", { token, headers });
      expect(response.status).toBe(401);
      return response.text();
    };

    const refusal = await readRefusal(malformed);

    expect(await readRefusal(await makeForeign())).toBe(refusal);
    expect(await readRefusal(await makeExpired())).toBe(refusal);
    expect(await readRefusal(await makeUnknownKey())).toBe(refusal);
    expect(await readRefusal(await makeForged())).toBe(refusal);
  });
});

test("a JWT is refused if its signature has the same bytes in another spelling", async () => {
  await using service = await serveHere(trust);
  const token = await makeJwt({}, await issuer.makeKey("RS256"));
  expect((await service.call("GET /plants", { token })).status).toBe(200);

  // A signature of 256 bytes leaves the last four bits of its base64url unused.
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const lastCharacter = alphabet.indexOf(token.at(-1) ?? "");
  const respelled = token.slice(0, -1) + alphabet[lastCharacter + 1];
  const response = await service.call("GET /plants", { token: respelled });

  expect(response.status).toBe(401);
  expect(service.readLog("request").at(-1)).toMatchObject({ status: 401, tokenError: "signature" });
});

describe("with scopes and a scope claim of other names, a JWT", () => {
  const settings = {
    ...trust,
    "jwt-read-scope": "plants:read",
    "jwt-write-scope": "plants:write",
    "jwt-scope-claim": "scp",
  };

  test("with the write scope may write", async () => {
    await using service = await serveHere(settings);
    const token = await makeJwt({ scp: "plants:write" });

    const response = await service.call("DELETE /plants/7", { token });

    // It may delete the plant, which isn't there.
    expect(response.status).toBe(404);
    expect(response.headers.get("www-authenticate")).toBeNull();
  });

  test("with the read scope gets a 403 that names the write scope", async () => {
    await using service = await serveHere(settings);
    const token = await makeJwt({ scp: ["openid", "plants:read"] });

    const response = await service.call("DELETE /plants/7", { token });

    expect(response.status).toBe(403);
    expect(response.headers.get("www-authenticate")).toContain('scope="write"');
  });

  test("with neither scope gets a 403, and the log says why", async () => {
    await using service = await serveHere(settings);
    const token = await makeJwt({ scp: "plants", scope: "write" });

    const response = await service.call("DELETE /plants/7", { token });

    expect(response.status).toBe(403);
    expect(response.headers.get("www-authenticate")).toContain('scope="write"');
    expect(service.readLog("request").at(-1)).toMatchObject({ status: 403, tokenError: "scope" });
  });
});
