/** `plantstore health`: asks a running service whether it is ready, for whatever supervises it. */
import { isGiven, readSetting } from "../config.ts";
import type { Call, Command } from "./command.ts";
import { showSafely } from "./plant-table.ts";
import { adviseTrust, exitCodes } from "./service-client.ts";

/** Below the time that supervisors give a check. */
const timeoutMs = 4_000;

export const healthCommand: Command = {
  name: "health",
  summary:
    "Ask a running service whether it is ready. Without a URL it asks the one that serve would start " +
    "with the same settings. Ends with 0 if it is ready, else with 6.",
  words: [],
  flags: {},
  settings: ["url", "host", "port", "basePath", "tlsCert"],
  examples: [
    "plantstore health",
    "PLANTSTORE_PORT=9000 plantstore health",
    "plantstore health --url https://plants.example/v1",
  ],
  async run(call) {
    const { terminal } = call;
    const { url, isOwn } = findService(call);
    try {
      const answer = await fetch(`${url}/readyz`, {
        signal: AbortSignal.timeout(timeoutMs),
        // Its certificate is for those who come from outside; nothing is told to it here.
        ...(isOwn && { tls: { rejectUnauthorized: false } }),
      });
      if (answer.ok) {
        terminal.out("ready\n");
        return exitCodes.done;
      }
      const problem = await answer.json().catch(() => undefined);
      // Whoever answers has a say in it.
      const why = problem?.detail ? `: ${showSafely(String(problem.detail))}` : ".";
      terminal.say(`plantstore: ${url} is not ready (${answer.status})${why}`);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      const advice = adviseTrust(code) ?? "";
      terminal.say(`plantstore: No answer from ${url} (${code ?? message}). ${advice}`.trimEnd());
    }
    return exitCodes.unavailable;
  },
};

/** Whoever runs it beside the service, in its environment, need not say where that is. */
function findService({ flags }: Call): { readonly url: string; readonly isOwn: boolean } {
  if (isGiven("url", flags)) return { url: readSetting("url", flags), isOwn: false };
  const host = readSetting("host", flags);
  const reachable = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  const scheme = readSetting("tlsCert", flags) === "" ? "http" : "https";
  const authority = reachable.includes(":") ? `[${reachable}]` : reachable;
  const path = readSetting("basePath", flags);
  return { url: `${scheme}://${authority}:${readSetting("port", flags)}${path}`, isOwn: true };
}
