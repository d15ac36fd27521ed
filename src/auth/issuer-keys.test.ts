/**
 * The issuer's keys over time: rotation, withdrawal, storms, an issuer that cannot be reached or
 * believed.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createAsk } from "../../test/openid-inquiry.ts";
import {
  makeSigningKey,
  type OpenIdIssuer,
  type SigningKey,
  sign,
  startIssuer,
} from "../../test/openid-issuer.ts";
import type { JwtIssuer } from "../domain/issuer.ts";
import { fetchKeySet } from "./issuer-documents.ts";
import { JsonWebTokens } from "./json-web-tokens.ts";

const cooldownMs = 10_000;
const retryMs = 1_000;
const trustMs = 3_600_000;

let issuer: OpenIdIssuer;
let key: SigningKey;
let nowMs: number;
let jwts: JsonWebTokens;
let ask: (token: string) => Promise<unknown>;

const credential = expect.stringMatching(/^http.* alice$/);
const alice = { credential, user: "alice", garden: "alice", scope: "write" };
const down = () => new Response("", { status: 503 });

beforeEach(async () => {
  issuer = startIssuer();
  key = await issuer.makeKey();
  nowMs = 1_800_000_000_000;
  trust({});
});

afterEach(() => issuer.stop());

function trust(settings: Partial<JwtIssuer>): void {
  jwts = new JsonWebTokens({ ...issuer.trust, ...settings }, () => nowMs);
  ask = createAsk(jwts, () => nowMs);
}

/** A token that outlives every time of these tests. */
const signLong = (by: SigningKey) => sign(by, issuer.claims(nowMs, { exp: nowMs }));

describe("keys", () => {
  test("are asked for when they are first needed, once for all who wait", async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => signLong(key)));
    expect(issuer.asked).toBe(0);
    expect(await Promise.all(tokens.map(ask))).toEqual(tokens.map(() => alice));
    expect(issuer.asked).toBe(1);
  });

  test("are taken from the address that is given, if one is", async () => {
    issuer.respond = (path) => (path === "/keys" ? undefined : down());
    expect(await ask(await signLong(key))).toBe("unavailable");
    trust({ keysUrl: `${issuer.url}/keys` });
    expect(await ask(await signLong(key))).toEqual(alice);
  });

  test("that are new count at once, as soon as the issuer may be asked again", async () => {
    await ask(await signLong(key));
    nowMs += cooldownMs - 1;
    const second = await issuer.makeKey();
    expect(await ask(await signLong(second))).toBe("unauthenticated");
    nowMs += 1;
    expect(await ask(await signLong(second))).toEqual(alice);
    expect(await ask(await signLong(key))).toEqual(alice);
    expect(issuer.asked).toBe(2);
  });

  test("that are withdrawn count no more after a refresh, also for tokens that are remembered", async () => {
    const token = await signLong(key);
    expect(await ask(token)).toEqual(alice);
    issuer.published = [(await makeSigningKey()).publicJwk];
    expect(await ask(token)).toEqual(alice);
    await jwts.refreshKeys();
    expect(await ask(token)).toBe("unauthenticated");
    issuer.published = [];
    await jwts.refreshKeys();
    expect(await ask(token)).toBe("unauthenticated");
  });

  test("whose names repeat, or that are private, open nothing", async () => {
    const second = await makeSigningKey();
    issuer.published.push({ ...second.publicJwk, kid: key.kid });
    expect(await ask(await signLong(key))).toBe("unauthenticated");
    const exported = await crypto.subtle.exportKey("jwk", key.privateKey);
    issuer.published = [{ kty: "EC", ...(exported as object), kid: key.kid, key_ops: ["verify"] }];
    await jwts.refreshKeys();
    expect(await ask(await signLong(key))).toBe("unauthenticated");
  });
});

describe("a storm of tokens with unknown keys", () => {
  test("reaches the issuer once a cooldown, however many they are", async () => {
    await ask(await signLong(key));
    const storm = async () => {
      for (let count = 0; count < 200; count++) {
        const token = await sign(key, issuer.claims(nowMs), { kid: `unknown-${count}` });
        expect(await ask(token)).toBe("unauthenticated");
      }
    };
    await storm();
    expect(issuer.asked).toBe(1);
    nowMs += cooldownMs;
    await storm();
    expect(issuer.asked).toBe(2);
  });

  test("reaches an issuer that is down no more often", async () => {
    issuer.respond = (path) => (path === "/keys" ? down() : undefined);
    const token = await signLong(key);
    for (let count = 0; count < 50; count++) expect(await ask(token)).toBe("unavailable");
    expect(issuer.asked).toBe(1);
  });
});

describe("an issuer that cannot be reached", () => {
  test("makes tokens neither good nor bad until it can", async () => {
    issuer.respond = down;
    const token = await signLong(key);
    expect(await ask(token)).toBe("unavailable");
    issuer.respond = undefined;
    nowMs += retryMs - 1;
    expect(await ask(token)).toBe("unavailable");
    nowMs += 1;
    expect(await ask(token)).toEqual(alice);
  });

  test("leaves its keys in force for an hour, and not a millisecond longer", async () => {
    const [known, fresh] = [await signLong(key), await signLong(key)];
    expect(await ask(known)).toEqual(alice);
    issuer.respond = down;
    nowMs += trustMs;
    expect(await jwts.refreshKeys().catch((error) => error)).toBeInstanceOf(Error);
    expect(await ask(known)).toEqual(alice);
    expect(await ask(fresh)).toEqual(alice);
    nowMs += 1;
    expect(await ask(known)).toBe("unavailable");
    expect(await ask(fresh)).toBe("unavailable");
    issuer.respond = undefined;
    nowMs += retryMs;
    expect(await ask(known)).toEqual(alice);
  });

  test("does not hold up tokens whose keys are known", async () => {
    const token = await signLong(key);
    await ask(token);
    const silence = Promise.withResolvers<Response>();
    issuer.respond = () => silence.promise;
    nowMs += cooldownMs;
    const refreshing = jwts.refreshKeys().catch(() => {});
    expect(await ask(token)).toEqual(alice);
    expect(await ask(await signLong(key))).toEqual(alice);
    silence.resolve(down());
    await refreshing;
  });
});

describe("what an issuer publishes", () => {
  const failureOf = (trusted: JwtIssuer, timeoutMs = 5_000) =>
    fetchKeySet(trusted, { timeoutMs }).then(
      () => undefined,
      (error) => error,
    );

  test("is taken up to 256 KiB, and not a byte more", async () => {
    let bytes = 256 * 1024;
    issuer.respond = (path) =>
      path === "/keys" ? new Response('{"keys":[]}'.padEnd(bytes)) : undefined;
    expect(await failureOf(issuer.trust)).toBeUndefined();
    bytes++;
    expect(await failureOf(issuer.trust)).toBeInstanceOf(Error);
  });

  test("is not taken through a redirection, not even to the same place", async () => {
    issuer.respond = (path) => {
      if (path === "/moved") return Response.json({ keys: issuer.published });
      return path === "/keys" ? Response.redirect("/moved") : undefined;
    };
    expect(await failureOf({ ...issuer.trust, keysUrl: `${issuer.url}/moved` })).toBeUndefined();
    expect(await failureOf(issuer.trust)).toBeInstanceOf(Error);
  });

  test("is not waited for without end, whether nothing comes or a little at a time", async () => {
    const silence = Promise.withResolvers<Response>();
    issuer.respond = () => silence.promise;
    expect(await failureOf(issuer.trust, 50)).toMatchObject({ name: "TimeoutError" });
    silence.resolve(down());
    const drip = async (controller: ReadableStreamDefaultController) => {
      await Bun.sleep(5);
      controller.enqueue(Buffer.from(" "));
    };
    issuer.respond = () => new Response(new ReadableStream({ pull: drip }));
    expect(await failureOf(issuer.trust, 50)).toMatchObject({ name: "TimeoutError" });
  });
});

describe("what an issuer publishes is not believed", () => {
  const discovery = (document: object) => {
    issuer.respond = (path) => (path === "/keys" ? undefined : Response.json(document));
  };

  test.each<[name: string, respond: (path: string) => Response | undefined]>([
    ["when it is no JSON", () => new Response("<html>")],
    ["when it is no object", () => Response.json(null)],
    ["when there are no keys in it", (path) => (path === "/keys" ? Response.json({}) : undefined)],
    [
      "when a key is no object",
      (path) => (path === "/keys" ? Response.json({ keys: [7] }) : undefined),
    ],
  ])("%s", async (_, respond) => {
    const token = await signLong(key);
    expect(await ask(token)).toEqual(alice);
    issuer.respond = respond;
    expect(await jwts.refreshKeys().catch((error) => error)).toBeInstanceOf(Error);
    // And what was known before goes on to count.
    expect(await ask(token)).toEqual(alice);
    trust({});
    expect(await ask(token)).toBe("unavailable");
  });

  test.each<[name: string, document: () => object]>([
    [
      "that is of another issuer",
      () => ({ issuer: "https://evil.test", jwks_uri: `${issuer.url}/keys` }),
    ],
    ["that names no keys", () => ({ issuer: issuer.url })],
    ["that names a file", () => ({ issuer: issuer.url, jwks_uri: "file:///etc/passwd" })],
    [
      "that names keys without TLS",
      () => ({ issuer: issuer.url, jwks_uri: "http://evil.test/keys" }),
    ],
    [
      "that names another service of this machine",
      () => ({ issuer: issuer.url, jwks_uri: "http://127.0.0.1:1/keys" }),
    ],
  ])("in a discovery document %s", async (_, document) => {
    discovery(document());
    const failure = await fetchKeySet(issuer.trust).catch((error) => error);
    expect(failure.message).toContain("/.well-known/openid-configuration");
    expect(issuer.asked).toBe(0);
  });
});
