/** What commands share that call a running service: where it is, the token, and what went wrong. */
import { isTokenForm } from "../auth/opaque-token.ts";
import {
  type Fault,
  PlantStore,
  type PlantStoreOptions,
  PlantStoreProblem,
  PlantStoreUnreachable,
} from "../client/plant-store.ts";
import { readSetting, readToken } from "../config.ts";
import type { Call } from "./command.ts";
import { showSafely } from "./plant-table.ts";

export const exitCodes = {
  done: 0,
  failed: 1,
  calledWrongly: 2,
  notFound: 3,
  tokenRefused: 4,
  conflict: 5,
  unavailable: 6,
  linesRefused: 7,
  interrupted: 130,
} as const;

export const variables = {
  PLANTSTORE_TOKEN: "the token to call with; plantstore token create USER makes one",
} as const;

/** For a person who waits; an import has more patience. */
const patienceDefault = { retries: 2 };

/** Resolves to the exit code; what the service refuses is said in one line. */
export async function withStore(
  call: Call,
  use: (store: PlantStore) => Promise<number>,
  patience: Pick<PlantStoreOptions, "retries" | "limitedRetries"> = patienceDefault,
): Promise<number> {
  const url = readSetting("url", call.flags);
  const token = readToken();
  const complaint = findTokenFault(token);
  if (complaint !== undefined) {
    call.terminal.say(`plantstore: ${complaint}`);
    return exitCodes.tokenRefused;
  }
  try {
    return await use(new PlantStore({ url, token, ...patience }));
  } catch (error) {
    const { message, exitCode } = explainFailure(error, url);
    // Whoever answers has a say in it.
    call.terminal.say(`plantstore: ${showSafely(message)}`);
    return exitCode;
  }
}

const howToGetOne = "Set PLANTSTORE_TOKEN; plantstore token create USER makes a token.";

/** Catches a mistyped token before it is sent. What does not look like one of ours may be valid. */
function findTokenFault(token: string): string | undefined {
  if (token === "") return `There is no token. ${howToGetOne}`;
  const isWhole = token.startsWith("plant_") ? isTokenForm(token) : /^[\x21-\x7e]+$/.test(token);
  return isWhole ? undefined : "PLANTSTORE_TOKEN is not a whole token. Copy it again, all of it.";
}

interface Failure {
  readonly message: string;
  readonly exitCode: number;
}

/** Where no authority that is trusted besides would help. */
const certificateFaults: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: "Its certificate is for another name. Call it by that one.",
  CERT_HAS_EXPIRED: "Its certificate has expired.",
  CERT_NOT_YET_VALID: "Its certificate is not valid yet.",
};

/** Absent unless it was the certificate that kept an answer from coming. */
export function adviseTrust(code = ""): string | undefined {
  if (!/CERT|UNABLE_TO_VERIFY/.test(code)) return undefined;
  if (certificateFaults[code] !== undefined) return certificateFaults[code];
  return "Its certificate is not trusted. NODE_EXTRA_CA_CERTS may name a file with its authority's.";
}

/** Throws what is no failure of a call on. */
function explainFailure(error: unknown, url: string): Failure {
  if (error instanceof PlantStoreUnreachable) {
    const { code, message } = error.cause as { code?: string; message: string };
    const advice =
      adviseTrust(code) ??
      "Is the service running? Start it with plantstore serve, or say where it is with --url or " +
        "PLANTSTORE_URL.";
    return {
      message: `No answer from ${url} in ${error.tries} tries (${code ?? message}). ${advice}`,
      exitCode: exitCodes.unavailable,
    };
  }
  if (error instanceof PlantStoreProblem) return explainProblem(error, url);
  throw error;
}

/** A service that is away or busy, as a gateway tells it in its own words. */
const gatewayStatuses: readonly number[] = [429, 502, 503, 504];

function explainProblem(problem: PlantStoreProblem, url: string): Failure {
  const { code, detail, status, requestId } = problem;
  switch (code) {
    case "invalid-request":
      return { message: renderFaults(problem), exitCode: exitCodes.calledWrongly };
    case "unauthenticated":
      return {
        message: `The service refuses the token: it is unknown, expired or revoked. ${howToGetOne}`,
        exitCode: exitCodes.tokenRefused,
      };
    case "forbidden":
      return {
        message: "The token may only read. Set PLANTSTORE_TOKEN to one with the scope write.",
        exitCode: exitCodes.tokenRefused,
      };
    case "not-found":
      return { message: `${url}: ${detail} Check --url.`, exitCode: exitCodes.failed };
    case "conflict":
      return {
        message: `${detail} Choose another id, or give none and get the next.`,
        exitCode: exitCodes.conflict,
      };
    case "rate-limited":
    case "unavailable":
      return { message: `${detail} Try again later.`, exitCode: exitCodes.unavailable };
    case "storage-full":
      return { message: detail, exitCode: exitCodes.unavailable };
    case "unexpected":
      if (gatewayStatuses.includes(status)) {
        return {
          message: `What stands before ${url} answers for it (status ${status}). Try again later.`,
          exitCode: exitCodes.unavailable,
        };
      }
      return {
        message: `${url} does not answer as a Plant Store does (status ${status}). Check --url.`,
        exitCode: exitCodes.failed,
      };
    default:
      return {
        message: `${detail} The service's log says more about request ${requestId}.`,
        exitCode: exitCodes.failed,
      };
  }
}

/** Every fault with its place, or what the problem says as a whole. */
export function renderFaults(problem: PlantStoreProblem): string {
  const faults = problem.errors.map((fault) => `${placeOf(fault)} ${fault.detail}`.trimStart());
  return faults.length === 0 ? problem.detail : faults.join("; ");
}

function placeOf({ pointer, parameter, header }: Fault): string {
  return pointer?.slice(1) ?? parameter ?? header ?? "";
}
