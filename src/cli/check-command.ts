/** `plantstore check`: checks a running service against its contract, from outside. */
import { contract, topics } from "../check/contract.ts";
import {
  CannotCheck,
  type CheckOptions,
  type CheckResult,
  runCheck,
  type Tokens,
} from "../check/run-check.ts";
import { quoteText, readSetting, readToken, settings } from "../config.ts";
import { CheckReport, renderJsonReport } from "./check-report.ts";
import { CliError, exitCodes, usageError } from "./cli-error.ts";
import { type Call, type Command, choiceFlag, numberFlag, textFlag } from "./command.ts";
import { adviseConnection, cleanToken } from "./service-client.ts";
import { onStopSignal } from "./stop-signals.ts";
import { showSafely } from "./terminal.ts";

const timeoutSecondsDefault = 10;
const timeoutSecondsMax = 600;

export const checkCommand: Command = {
  name: "check",
  summary: "Check a running service against its contract, and clean up.",
  words: ["[URL]"],
  flags: {
    token: {
      placeholder: "TOKEN",
      help: "a token that may write; safer in the environment, because others can see flags",
      environment: "PLANTSTORE_TOKEN",
    },
    "token-2": {
      placeholder: "TOKEN",
      help: "a token to another garden, to check that gardens are separate",
      environment: "PLANTSTORE_TOKEN_2",
    },
    "token-read": {
      placeholder: "TOKEN",
      help: "a read-only token, to check that it cannot write",
      environment: "PLANTSTORE_TOKEN_READ",
    },
    only: {
      placeholder: "TOPIC",
      help: "check one topic only, such as list or tokens",
      fallback: "all",
    },
    timeout: {
      placeholder: "SECONDS",
      help: "how long a response may take",
      fallback: String(timeoutSecondsDefault),
    },
    slow: { help: "also check what takes 15 seconds" },
    json: { help: "print the results as JSON" },
  },
  settings: ["url"],
  examples: [
    "PLANTSTORE_TOKEN=… plantstore check https://plants.example/v1",
    'plantstore check http://127.0.0.1:8080 --token "$TOKEN" --token-2 "$OTHER"',
    "plantstore check http://127.0.0.1:8080 --only list --json",
  ],
  async run(call) {
    const interruption = new AbortController();
    const options = { ...readOptions(call), signal: interruption.signal };
    const { url, rows } = options;
    const isJson = call.flags.json === true;
    const report = new CheckReport(call.terminal, { url, isJson, total: rows.length });
    const stopListening = onStopSignal(() => {
      report.say("Stopping. Deleting what was created.");
      interruption.abort();
    });
    try {
      const result = await runCheck(options, (row) => report.add(row));
      report.end(result);
      if (isJson) call.terminal.out(renderJsonReport(url, result));
      return chooseExitCode(result);
    } catch (error) {
      if (!(error instanceof CannotCheck)) throw error;
      return explain(call, error, url);
    } finally {
      stopListening();
    }
  },
};

function chooseExitCode({ results, leftBehind, isInterrupted }: CheckResult): number {
  if (isInterrupted) return exitCodes.interrupted;
  const hasFailed = results.some(({ outcome }) => outcome === "failed");
  return hasFailed || leftBehind.length > 0 ? exitCodes.failed : exitCodes.done;
}

function readOptions(call: Call): Omit<CheckOptions, "signal"> {
  const [address] = call.words;
  const url = address === undefined ? readSetting("url", call.flags) : settings.url.parse(address);
  if (url === undefined) {
    throw usageError(`URL must be ${settings.url.expected}, not ${quoteText(address ?? "")}.`);
  }
  const tokens = readTokens(call);
  const topic = choiceFlag(call, "only", topics);
  const rows = topic === undefined ? contract : contract.filter((row) => row.topic === topic);
  const seconds = numberFlag(call, "timeout", { min: 1, max: timeoutSecondsMax });
  const timeoutMs = (seconds ?? timeoutSecondsDefault) * 1_000;
  return { url, tokens, rows, timeoutMs, isSlow: call.flags.slow === true };
}

function readTokens(call: Call): Tokens {
  const read = (flag: string, suffix: string) => {
    const token = cleanToken(textFlag(call, flag) ?? readToken(suffix));
    if (/^[!-~]*$/.test(token)) return token === "" ? undefined : token;
    throw usageError(`--${flag} is not a whole token. Copy it again.`);
  };
  const [write, second] = [read("token", ""), read("token-2", "_2")];
  if (write === undefined) {
    const advice = "Set PLANTSTORE_TOKEN, or give --token; plantstore token create makes one.";
    throw new CliError(`A token is needed. ${advice}`, exitCodes.tokenRefused);
  }
  if (write === second) {
    throw usageError("--token-2 must open another garden than --token.");
  }
  return { write, second, read: read("token-read", "_READ") };
}

async function explain({ terminal }: Call, error: CannotCheck, url: string): Promise<number> {
  const [advice, exitCode] = {
    unreachable: [
      (await adviseConnection(url, error.code)) ?? `Is the service running at ${url}?`,
      exitCodes.unavailable,
    ],
    "token-refused": ["plantstore token create USER makes one.", exitCodes.tokenRefused],
    "no-room": ["", exitCodes.failed],
    unusable: [`Is ${url} a Plant Store?`, exitCodes.failed],
  }[error.reason] as [string, number];
  terminal.say(`plantstore: ${showSafely(error.message)} ${advice}`.trimEnd());
  return exitCode;
}
