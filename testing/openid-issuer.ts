/**
 * A small OpenID issuer over a real socket, with real keys: what it publishes can be changed and
 * broken.
 */
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import type { JwtIssuer } from "../src/auth/jwt.ts";

export const audience = "https://plants.test";

export type SigningKey = Awaited<ReturnType<typeof makeSigningKey>>;

let keysMade = 0;

export async function makeSigningKey(algorithm = "ES256") {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const kid = `key-${++keysMade}`;
  const publicJwk = { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: "sig" };
  return { kid, algorithm, privateKey, publicJwk };
}

export function startIssuer() {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    async fetch(request): Promise<Response> {
      const { pathname } = new URL(request.url);
      if (pathname === "/keys") issuer.asked++;
      const response = await issuer.respond?.(pathname);
      if (response) return response;
      if (pathname === "/keys") return Response.json({ keys: issuer.published });
      if (pathname !== "/.well-known/openid-configuration")
        return new Response("", { status: 404 });
      return Response.json({ issuer: url, jwks_uri: `${url}/keys` });
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const trust: JwtIssuer = {
    issuer: url,
    audiences: [audience],
    keysUrl: undefined,
    gardenClaim: "sub",
    scopeClaim: "scope",
    readScope: "read",
    writeScope: "write",
  };
  const issuer = {
    url,
    /** Its settings in the service. */
    trust,
    /** The keys that it publishes. */
    published: [] as JWK[],
    /** How often its keys were asked for. */
    asked: 0,
    /** Replaces its responses, by path; absent: it responds as it should. */
    respond: undefined as ((path: string) => Response | Promise<Response> | undefined) | undefined,
    /** Makes a key and publishes it. */
    async makeKey(algorithm?: string) {
      const key = await makeSigningKey(algorithm);
      issuer.published.push(key.publicJwk);
      return key;
    },
    /** Claims of a good token, with others in their place; `undefined` takes one away. */
    claims(nowMs: number, others: Record<string, unknown> = {}): JWTPayload {
      const iat = Math.floor(nowMs / 1_000);
      const good = { iss: url, aud: audience, sub: "alice", scope: "write", iat, exp: iat + 60 };
      return { ...good, ...others };
    },
    stop: (): Promise<void> => server.stop(true),
  };
  return issuer;
}

/** A token signed by this key, with these fields in its header. */
export function sign(
  key: SigningKey,
  claims: JWTPayload,
  header: Record<string, unknown> = {},
): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, ...header })
    .sign(key.privateKey);
}
