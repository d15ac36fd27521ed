/** What an OpenID issuer publishes, asked for within bounds of time and size. It keeps nothing. */
import type { JSONWebKeySet } from "jose";
import { isTrustworthyAddress, type JwtIssuer } from "../domain/issuer.ts";

const defaultTimeoutMs = 5_000;
const documentBytesMax = 256 * 1024;

interface FetchOptions {
  readonly timeoutMs?: number;
  /** The trace of the request for which it is asked. */
  readonly traceparent?: string | undefined;
}

/** Fails if the issuer cannot be reached, or if what it says does not add up. */
export async function fetchKeySet(
  { issuer, keysUrl }: JwtIssuer,
  { timeoutMs = defaultTimeoutMs, traceparent }: FetchOptions = {},
): Promise<JSONWebKeySet> {
  const headers = { accept: "application/json", ...(traceparent && { traceparent }) };
  // A redirection could lead anywhere, so there is none.
  const init = { signal: AbortSignal.timeout(timeoutMs), headers, redirect: "error" } as const;
  const keySet = await fetchObject(keysUrl ?? (await discoverKeysUrl(issuer, init)), init);
  if (!Array.isArray(keySet.keys)) throw new Error("The issuer's key set holds no list of keys.");
  return { keys: keySet.keys };
}

async function discoverKeysUrl(issuer: string, init: RequestInit): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const document = await fetchObject(url, init);
  // Without this, one issuer's document could stand in for another's.
  if (document.issuer !== issuer) throw new Error(`${url} is of another issuer.`);
  const keysUrl = String(document.jwks_uri);
  const isSameOrigin = URL.canParse(keysUrl) && new URL(keysUrl).origin === new URL(issuer).origin;
  // From outside, nobody sends the service to an address on this machine.
  if (!isTrustworthyAddress(keysUrl) || !(isSameOrigin || keysUrl.startsWith("https:"))) {
    throw new Error(`${url} names no jwks_uri that can be trusted.`);
  }
  return keysUrl;
}

async function fetchObject(url: string, init: RequestInit): Promise<Record<string, unknown>> {
  const response = await fetch(url, init);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${url} answered ${response.status}.`);
  }
  const document: unknown = JSON.parse(await readText(response, url));
  if (typeof document === "object" && document !== null) return { ...document };
  throw new Error(`${url} is no JSON object.`);
}

async function readText(response: Response, url: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > documentBytesMax) throw new Error(`${url} is larger than ${documentBytesMax} B.`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
