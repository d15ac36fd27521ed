/** What the commands that call a service share: URL, token, file formats and error messages. */

import { type Format, formatOf, formats } from "../../client/files/rows.ts";
import {
  PlantStore,
  type PlantStoreOptions,
  PlantStoreProblem,
  PlantStoreUnreachable,
} from "../../client/plant-store.ts";
import { describeErrors } from "../../client/problem-error.ts";
import { retriedStatuses } from "../../client/send.ts";
import { cleanToken, findTokenError } from "../auth/opaque-token.ts";
import { choice, type Parser, readSetting } from "../shared/config.ts";
import { describeSystemError } from "../shared/system-errors.ts";
import { showSafely } from "../shared/text.ts";
import { CliError, exitCodes } from "./cli-error.ts";
import { type Call, type Command, readFlag } from "./command.ts";

export const formatFlag = {
  placeholder: formats.join("|"),
  help: "the format of the file",
  fallback: "by the file's extension, else jsonl",
} as const;

/** The service checks its range. */
export const plantId: Parser<bigint> = {
  parse: (text) => (/^(?:0|-?[1-9]\d{0,29})$/.test(text) ? BigInt(text) : undefined),
  expected: "an integer such as 7",
};

export const tagFilter = {
  placeholder: "TEXT",
  help: "only plants with exactly this tag",
} as const;

/** By the flag, else by the file's extension. */
export function chooseFormat(call: Call, path: string): Format {
  return readFlag(call, "format", choice(...formats)) ?? formatOf(path) ?? "jsonl";
}

export const variables = {
  PLANTSTORE_TOKEN: "the token to call with; plantstore token create USER makes one",
} as const;

type Patience = Pick<PlantStoreOptions, "retries" | "limitedRetries" | "deadlineMs">;

/** Somebody is waiting for one request, or a few. */
const hasty: Patience = { retries: 2, deadlineMs: 30_000 };

/**
 * Long enough for a service that restarts. A rate limit only makes the work take longer. The
 * deadline is each request's, for a service that hangs: it starts over after each 429.
 */
export const patient: Patience = {
  retries: 20,
  limitedRetries: Number.POSITIVE_INFINITY,
  deadlineMs: 180_000,
};

/**
 * Throws a `CliError` if the service refuses or doesn't respond. More patience is only for a
 * service that has responded once: a wrong URL fails at once.
 */
export async function withService<Result>(
  call: Call,
  use: (store: PlantStore) => Promise<Result>,
  patience = hasty,
): Promise<Result> {
  const url = readSetting("url", call.flags, call.terminal.env);
  const token = requireToken(call);
  const store = new PlantStore({ url, token, ...patience });
  try {
    if (patience !== hasty) await requireResponse(store);
    return await use(store);
  } catch (error) {
    throw toCliError(error, url);
  }
}

interface ServiceCommand extends Omit<Command, "settings" | "run"> {
  readonly run: (store: PlantStore, call: Call) => Promise<number | undefined>;
}

/** A command that only calls a service. */
export function serviceCommand({ run, ...command }: ServiceCommand): Command {
  return {
    ...command,
    settings: ["url"],
    variables: { ...variables, ...command.variables },
    run: (call) => withService(call, (store) => run(store, call)),
  };
}

async function requireResponse(store: PlantStore): Promise<void> {
  try {
    await store.page({ limit: 0, retries: 0, deadlineMs: hasty.deadlineMs });
  } catch (error) {
    // `use` meets any other failure again.
    if (error instanceof PlantStoreUnreachable) throw error;
  }
}

/**
 * The token in `PLANTSTORE_TOKEN`, because other users of the machine can see the flags of a
 * process. Throws a `CliError` if there is none, or it can't be one.
 */
function requireToken({ terminal }: Call): string {
  const token = cleanToken(terminal.env.PLANTSTORE_TOKEN ?? "");
  const error = findTokenError(token);
  if (token !== "" && error === undefined) return token;
  throw new CliError(
    token === ""
      ? "There is no token. Set PLANTSTORE_TOKEN. plantstore token create USER makes a token; with " +
          "--database, in the store that the service uses."
      : `PLANTSTORE_TOKEN ${error}`,
    exitCodes.tokenRefused,
  );
}

/** Returns what isn't a failed call as it is. */
function toCliError(error: unknown, url: string): unknown {
  if (error instanceof PlantStoreUnreachable) {
    return new CliError(describeNoResponse(url, error.cause), exitCodes.unavailable);
  }
  if (!(error instanceof PlantStoreProblem)) return error;
  const isForeign = error.code === "unexpected" || isBelowPlants(error, url);
  const [exitCode, message] = isForeign
    ? describeForeignResponse(error, url)
    : describeProblem(error, url);
  return new CliError(showSafely(message), exitCode);
}

/** A URL that ends in /plants: calls go to the paths of single plants, with `plants` as the id. */
function isBelowPlants({ code, errors }: PlantStoreProblem, url: string): boolean {
  const isRefused = code === "method-not-allowed" || errors.some((each) => each.parameter === "id");
  return isRefused && /\/plants\/*$/.test(url);
}

/** Why no response came, and what to do. */
export function describeNoResponse(url: string, cause: unknown): string {
  const { code = "", message } = cause as { code?: string; message: string };
  const failure = describeSystemError(cause) ?? message.replace(/\.$/, "");
  const advice =
    adviseCertificate(code) ??
    adviseScheme(url, code, failure) ??
    "Is the service running? Start it with plantstore serve, or set its address with --url or " +
      "PLANTSTORE_URL.";
  return showSafely(`No response from ${url}: ${failure}. ${advice}`.trimEnd());
}

/** Only an authority that isn't known can be trusted; any other reason is in the failure. */
function adviseCertificate(code: string): string | undefined {
  if (/UNABLE_TO|SELF_SIGNED/.test(code)) {
    return "Set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority.";
  }
  return code.includes("CERT") ? "" : undefined;
}

/** A port of the other scheme fails the handshake of https, and closes a connection of http. */
function adviseScheme(url: string, code: string, failure: string): string | undefined {
  const isHandshake = code === "EPROTO" || code === "ERR_SSL_WRONG_VERSION_NUMBER";
  if (isHandshake) return `Is it ${url.replace("https:", "http:")}?`;
  const isClosed = failure.startsWith("the connection was closed") && url.startsWith("http:");
  return isClosed ? `Is it ${url.replace("http:", "https:")}?` : undefined;
}

type Advice = readonly [exitCode: number, text: string];

/** What to do about a problem. `said` replaces what the service says, which is for programmers. */
const adviceByCode: Readonly<Record<string, readonly [...Advice, said?: string]>> = {
  "invalid-request": [exitCodes.usage, ""],
  unauthenticated: [
    exitCodes.tokenRefused,
    "Create one there: plantstore token create USER --database FILE, with the file or URL that " +
      "the service was started with.",
    "The service refuses the token: it is expired, revoked, or not in the service's store.",
  ],
  forbidden: [exitCodes.tokenRefused, "Set PLANTSTORE_TOKEN to one with the scope write."],
  "not-found": [exitCodes.failed, "Check its address."],
  conflict: [exitCodes.conflict, "Choose another id, or leave it out to get the next."],
  gone: [
    exitCodes.failed,
    "Run it again without --after to see the events that are kept.",
    "The next events are no longer kept, or the service has other ones since a restore.",
  ],
  "precondition-failed": [
    exitCodes.failed,
    "Set it up to leave them as they are, or use another address.",
    "A proxy on the way changes ETags, so no change can be made safely.",
  ],
  "rate-limited": [exitCodes.unavailable, "Try again later."],
  unavailable: [exitCodes.unavailable, ""],
  "storage-full": [exitCodes.unavailable, ""],
};

function describeProblem(problem: PlantStoreProblem, url: string): Advice {
  const inLog = `See request ${problem.requestId} in the service's log.`;
  const [exitCode, advice, said = describeErrors(problem)] = adviceByCode[problem.code] ?? [
    exitCodes.failed,
    inLog,
  ];
  const subject = problem.code === "not-found" ? `${url}: ` : "";
  return [exitCode, `${subject}${said} ${advice}`.trimEnd()];
}

/** The response isn't a Plant Store's, or of another path than expected. */
export function describeForeignResponse(
  { status }: { readonly status: number },
  url: string,
): Advice {
  if (retriedStatuses.includes(status)) {
    const message = `A gateway in front of ${url} responded with status ${status}.`;
    return [exitCodes.unavailable, `${message} Try again later.`];
  }
  const message = `${url} doesn't respond like a Plant Store (status ${status}).`;
  return [exitCodes.failed, `${message} Check its address.`];
}
