/** `plantstore health`: asks a running service whether it is ready, for whatever supervises it. */
import { readSetting } from "../config.ts";
import type { Command } from "./command.ts";
import { exitCodes } from "./service-client.ts";

/** Below the time that supervisors give a check. */
const timeoutMs = 4_000;

export const healthCommand: Command = {
  name: "health",
  summary: "Ask a running service whether it is ready.",
  words: [],
  flags: {},
  settings: ["url"],
  examples: ["plantstore health", "plantstore health --url http://127.0.0.1:9000/v1"],
  async run({ flags, terminal }) {
    const url = readSetting("url", flags);
    try {
      const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
      if (answer.ok) {
        terminal.out("ready\n");
        return exitCodes.done;
      }
      terminal.say(`plantstore: ${url} is not ready (${answer.status}).`);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      terminal.say(`plantstore: No answer from ${url} (${code ?? message}).`);
    }
    return exitCodes.unavailable;
  },
};
