/** `plantstore health`: whether a running service is ready, for containers and supervisors. */

import { isGiven, readSetting } from "../shared/config.ts";
import { showSafely } from "../shared/text.ts";
import { CliError, exitCodes } from "./cli-error.ts";
import type { Call, Command } from "./command.ts";
import { describeForeignResponse, describeNoResponse } from "./service-client.ts";

/** Less than supervisors allow for a check. */
const timeoutMs = 4_000;

/** Where `serve` listens. */
const ownSettings = ["host", "port", "basePath", "tlsCert"] as const;

export const healthCommand: Command = {
  name: "health",
  summary:
    "Check whether a running service is ready. Without --url, it checks the service that plantstore " +
    "serve would start here. Exits with 0 if it is ready, else with 6.",
  words: [],
  flags: {},
  settings: ["url", ...ownSettings],
  examples: ["plantstore health", "plantstore health --url https://plants.example/v1"],
  async run(call) {
    const { url, isOwn } = findService(call);
    const why = await findTrouble(url, isOwn);
    if (why !== undefined) throw new CliError(showSafely(why), exitCodes.unavailable);
    call.terminal.out("ready\n");
  },
};

/** Why it isn't ready; absent if it is. */
async function findTrouble(url: string, isOwn: boolean): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/readyz`, {
      signal: AbortSignal.timeout(timeoutMs),
      // A proxy's login page would count as ready.
      redirect: "manual",
      // On this machine its certificate needn't match, and no secret is sent.
      ...(isOwn && { tls: { rejectUnauthorized: false } }),
    });
    if (response.ok) return undefined;
    if (response.status < 500) return describeForeignResponse(response, url)[1];
    const problem = await response.json().catch(() => undefined);
    return `${url} is not ready (${response.status}): ${problem?.detail ?? "it doesn't say why."}`;
  } catch (error) {
    return describeNoResponse(url, error);
  }
}

/** Run in the environment of the service, it needs no URL. */
function findService({ flags, terminal }: Call): { readonly url: string; readonly isOwn: boolean } {
  const { env } = terminal;
  const hasOwnFlag = ownSettings.some((name) => isGiven(name, flags, {}));
  // A flag wins over the environment.
  if (isGiven("url", flags, hasOwnFlag ? {} : env)) {
    return { url: readSetting("url", flags, env), isOwn: false };
  }
  const host = readSetting("host", flags, env);
  const reachable = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  const scheme = readSetting("tlsCert", flags, env) === "" ? "http" : "https";
  const authority = reachable.includes(":") ? `[${reachable}]` : reachable;
  const path = readSetting("basePath", flags, env);
  return { url: `${scheme}://${authority}:${readSetting("port", flags, env)}${path}`, isOwn: true };
}
