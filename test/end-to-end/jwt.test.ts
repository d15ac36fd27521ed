/** JWTs with the real program, and an issuer that is down, slow, or changes its keys. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { audience, makeSigningKey, type SigningKey, sign, startIssuer } from "../openid-issuer.ts";
import { insist, type RunningService, startService, waitFor } from "./running-service.ts";

const issuer = startIssuer();
let key: SigningKey;
beforeAll(async () => {
  key = await issuer.makeKey("RS256");
});
beforeEach(() => {
  issuer.respond = undefined;
  issuer.published = [key.publicJwk];
});
afterAll(() => issuer.stop());

const trust = ["--jwt-issuer", issuer.url, "--jwt-audience", audience];
const oneThread = { args: ["--threads", "1", ...trust] };

const expiry = Math.floor(Date.now() / 1_000) + 600;
const signWith = (by: SigningKey, others: object = {}) =>
  sign(by, issuer.claims(Date.now(), { exp: expiry, ...others }));

function callOnce(service: RunningService, token: string, request = "GET /plants") {
  return service.call(request, { token, headers: { connection: "close" } });
}

/** On a socket of its own: `fetch` sends no more than 256 requests at once. */
async function exchange({ port }: RunningService, target: string, token: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) =>
        void socket.write(
          `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`,
        ),
      data(socket, bytes) {
        resolve(bytes.toString());
        socket.end();
      },
      close: () => resolve("closed"),
    },
  });
  return promise;
}

test("a service starts while its issuer is down, and accepts JWTs once it is up", async () => {
  issuer.respond = () => new Response("", { status: 502 });
  await using service = await startService({ args: ["--threads", "2", ...trust] });
  await waitFor(() => service.output().out.includes("issuer key refresh failed") || undefined);
  const token = await signWith(key);
  const unavailable = await callOnce(service, token);
  expect([unavailable.status, unavailable.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await unavailable.text()).not.toContain("127.0.0.1");
  expect((await service.call("GET /plants")).status).toBe(200);
  issuer.respond = undefined;
  await waitFor(async () => {
    const calls = Array.from({ length: 16 }, async () => (await callOnce(service, token)).status);
    return (await Promise.all(calls)).every((status) => status === 200) || undefined;
  });
  const { out, errors } = service.output();
  expect(out + errors).not.toContain(token);
});

test("the log says why a JWT was refused, and the response doesn't; /me says when one expires", async () => {
  // By the address of its keys alone, until the service has fetched them.
  issuer.respond = (path) => (path === "/keys" ? undefined : new Response("", { status: 404 }));
  const args = [...oneThread.args, "--jwt-jwks-url", `${issuer.url}/keys`];
  await using service = await startService({ args });
  const good = await signWith(key);
  await waitFor(async () => (await callOnce(service, good)).status === 200 || undefined);
  expect(await (await callOnce(service, good, "GET /me")).json()).toMatchObject({
    user: "alice",
    expiresAt: new Date(expiry * 1_000).toISOString(),
  });
  const other = { ...(await makeSigningKey("RS256")), kid: key.kid };
  const refused: Record<string, string> = {
    iss: await signWith(key, { iss: "https://evil.test" }),
    aud: await signWith(key, { aud: "https://evil.test" }),
    exp: await signWith(key, { exp: expiry - 1_200 }),
    alg: await signWith(await makeSigningKey("PS256")),
    kid: await signWith(await makeSigningKey("RS256")),
    signature: await signWith(other),
    malformed: "a.b.c",
    length: `${good}${"x".repeat(8_192)}`,
  };
  const bodies = new Set<string>();
  for (const [reason, token] of Object.entries(refused)) {
    const headers = { connection: "close", "x-request-id": `refused-${reason}` };
    const response = await service.call("GET /plants", { token, headers });
    expect([reason, response.status]).toEqual([reason, 401]);
    bodies.add((await response.text()).replace(`refused-${reason}`, ""));
  }
  expect(bodies.size).toBe(1);
  const lines = await waitFor(() => {
    const found = service
      .output()
      .out.split("\n")
      .filter((line) => line.includes('"refused-'));
    return found.length === Object.keys(refused).length ? found : undefined;
  });
  const logged = lines.map((line) => JSON.parse(line));
  expect(logged.map(({ event, status, tokenError }) => [event, status, tokenError])).toEqual(
    Object.keys(refused).map((reason) => ["request", 401, reason]),
  );
  const { out, errors } = service.output();
  for (const token of Object.values(refused)) expect(out + errors).not.toContain(token);
});

test("scopes have the configured names; a JWT without any is a 403 that names what it lacks", async () => {
  const scopes = ["--jwt-read-scope", "plants:read", "--jwt-write-scope", "plants:write"];
  const args = [...oneThread.args, "--jwt-scope-claim", "scp", ...scopes];
  await using service = await startService({ args });
  const read = await signWith(key, { scp: ["openid", "plants:read"] });
  const write = await signWith(key, { scp: "plants:write" });
  const neither = await signWith(key, { scp: "plants", scope: "write" });
  const ask = async (token: string, request: string) => {
    const { status, headers } = await callOnce(service, token, request);
    return [status, /scope="(\w+)"/.exec(headers.get("www-authenticate") ?? "")?.[1]];
  };
  await waitFor(async () => (await callOnce(service, read)).status === 200 || undefined);
  expect(await ask(read, "DELETE /plants/7")).toEqual([403, "write"]);
  expect(await ask(write, "DELETE /plants/7")).toEqual([404, undefined]);
  expect(await ask(write, "GET /me")).toEqual([200, undefined]);
  expect(await ask(neither, "GET /me")).toEqual([403, "read"]);
  expect(await ask(neither, "GET /plants/7")).toEqual([403, "read"]);
  expect(await ask(neither, "DELETE /plants/7")).toEqual([403, "write"]);
  await waitFor(() => /"status":403.*"tokenError":"scope"/.test(service.output().out) || undefined);
});

test("an issuer that hangs holds up no other tokens", async () => {
  const hanging = Promise.withResolvers<Response>();
  issuer.respond = () => hanging.promise;
  await using service = await startService(oneThread);
  const token = await signWith(key);
  // More than the storage works on at the same time, and than `fetch` sends at once.
  const held = Array.from({ length: 1_500 }, () => exchange(service, "/plants", token));
  for (let round = 0; round < 10; round++) {
    const response = await insist(() => service.call(`GET /plants?limit=${round}`));
    expect(response.status).toBe(200);
  }
  hanging.resolve(new Response("", { status: 502 }));
  for (const response of await Promise.all(held)) {
    expect(response).toMatch(/^HTTP\/1.1 503 .*\r\nRetry-After: 1\r\n/is);
  }
}, 120_000);
