/** What the commands that call a running service share: URL, token and error messages. */
import { isTokenForm } from "../auth/opaque-token.ts";
import {
  type Fault,
  PlantStore,
  type PlantStoreOptions,
  PlantStoreProblem,
  PlantStoreUnreachable,
} from "../client/plant-store.ts";
import { readSetting, readToken } from "../config.ts";
import { CliError, exitCodes } from "./cli-error.ts";
import type { Call } from "./command.ts";
import { showSafely } from "./terminal.ts";

export const variables = {
  PLANTSTORE_TOKEN: "the token to call with; plantstore token create USER makes one",
} as const;

/** For a person who waits; an import has more patience. */
const patienceDefault = { retries: 2 };

/** Resolves to the exit code. Throws a `CliError` if the service refuses or doesn't respond. */
export async function withStore(
  call: Call,
  use: (store: PlantStore) => Promise<number>,
  patience: Pick<PlantStoreOptions, "retries" | "limitedRetries"> = patienceDefault,
): Promise<number> {
  const url = readSetting("url", call.flags);
  const token = cleanToken(readToken());
  if (token === "") throw tokenError(`There is no token. ${howToGetOne}`);
  // What doesn't look like one of ours may still be valid, such as a JWT.
  const isWhole = token.startsWith("plant_") ? isTokenForm(token) : /^[\x21-\x7e]+$/.test(token);
  if (!isWhole) throw tokenError("PLANTSTORE_TOKEN is not a whole token. Copy all of it again.");
  try {
    return await use(new PlantStore({ url, token, ...patience }));
  } catch (error) {
    throw await explain(error, url);
  }
}

/** A token as it is pasted from a header or a file: with its scheme, or with spaces around it. */
export function cleanToken(text: string): string {
  return text.trim().replace(/^bearer\s+/i, "");
}

const howToGetOne =
  "Set PLANTSTORE_TOKEN. plantstore token create USER makes a token; with --database, in the " +
  "store that the service uses.";

function tokenError(message: string): CliError {
  return new CliError(message, exitCodes.tokenRefused);
}

/** Returns what isn't a failed call as it is. */
async function explain(error: unknown, url: string): Promise<unknown> {
  if (error instanceof PlantStoreUnreachable) {
    const { code, message } = error.cause as { code?: string; message: string };
    const advice =
      (await adviseConnection(url, code)) ??
      "Is the service running? Start it with plantstore serve, or set its address with --url or " +
        "PLANTSTORE_URL.";
    const what = `No response from ${url} in ${error.tries} tries (${code ?? message}).`;
    return new CliError(showSafely(`${what} ${advice}`), exitCodes.unavailable);
  }
  if (!(error instanceof PlantStoreProblem)) return error;
  const [exitCode, message] = describeProblem(error, url);
  const isPlainToTls = error.code === "unexpected" && error.status === 400;
  const advice = isPlainToTls ? await adviseConnection(url) : undefined;
  return new CliError(showSafely(advice ?? message), exitCode);
}

/** Certificates that trusting another authority wouldn't help. */
const certificateErrors: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: "Its certificate is for another name. Call it by that one.",
  CERT_HAS_EXPIRED: "Its certificate has expired.",
  CERT_NOT_YET_VALID: "Its certificate is not valid yet.",
};

const probeTimeoutMs = 2_000;

/** What to do about a certificate, or about https where the service speaks http. */
export async function adviseConnection(url: string, code = ""): Promise<string | undefined> {
  if (certificateErrors[code] !== undefined) return certificateErrors[code];
  if (/CERT|UNABLE_TO_VERIFY/.test(code)) {
    return "Its certificate is not trusted. Set NODE_EXTRA_CA_CERTS to a file with its authority's.";
  }
  if (code === "ECONNREFUSED") return undefined;
  const [from, to] = url.startsWith("https:") ? ["https", "http"] : ["http", "https"];
  const other = url.replace(from, to);
  const isThere = await fetch(`${other}/healthz`, {
    signal: AbortSignal.timeout(probeTimeoutMs),
    redirect: "manual",
    tls: { rejectUnauthorized: false },
  }).then(
    ({ status }) => status !== 400,
    () => false,
  );
  return isThere ? `That port speaks ${to}, not ${from}: use ${other}.` : undefined;
}

/** How a gateway reports a service that is down or busy. */
const gatewayStatuses: readonly number[] = [429, 502, 503, 504];

function describeProblem(
  problem: PlantStoreProblem,
  url: string,
): [exitCode: number, message: string] {
  const { code, detail, status, requestId } = problem;
  switch (code) {
    case "invalid-request":
      return [exitCodes.usage, describeErrors(problem)];
    case "unauthenticated":
      return [
        exitCodes.tokenRefused,
        "The service refuses the token: it is expired, revoked, or not in the service's store. " +
          "Create one there: plantstore token create USER --database FILE, with the file or URL " +
          "that the service was started with.",
      ];
    case "forbidden":
      return [
        exitCodes.tokenRefused,
        "The token may only read. Set PLANTSTORE_TOKEN to one with the scope write.",
      ];
    case "not-found":
      return [exitCodes.failed, `${url}: ${detail} Check --url.`];
    case "conflict":
      return [exitCodes.conflict, `${detail} Choose another id, or leave it out to get the next.`];
    case "rate-limited":
    case "unavailable":
      return [exitCodes.unavailable, `${detail} Try again later.`];
    case "storage-full":
      return [exitCodes.unavailable, detail];
    case "unexpected":
      return gatewayStatuses.includes(status)
        ? [
            exitCodes.unavailable,
            `A gateway in front of ${url} responded with status ${status}. Try again later.`,
          ]
        : [
            exitCodes.failed,
            `${url} doesn't respond like a Plant Store (status ${status}). Check --url.`,
          ];
    default:
      return [exitCodes.failed, `${detail} See request ${requestId} in the service's log.`];
  }
}

/** Every validation error with its place, or what the problem says as a whole. */
export function describeErrors(problem: PlantStoreProblem): string {
  const errors = problem.errors.map((error) => `${placeOf(error)} ${error.detail}`.trimStart());
  return errors.length === 0 ? problem.detail : errors.join("; ");
}

function placeOf({ pointer, parameter, header }: Fault): string {
  return pointer?.slice(1) ?? parameter ?? header ?? "";
}
