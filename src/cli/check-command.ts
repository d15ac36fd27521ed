/** `plantstore check`: checks a running service against its contract, from outside. */
import {
  CannotCheck,
  type CheckOptions,
  type CheckResult,
  contract,
  NoResponse,
  type RowResult,
  runCheck,
  tokenVariables,
  topics,
} from "../check/run-check.ts";
import { choice, readSetting, settings } from "../config.ts";
import { showSafely } from "../domain/errors.ts";
import { renderDuration } from "../wording.ts";
import { CliError, exitCodes } from "./cli-error.ts";
import { type Call, type Command, jsonFlag, parseText, readFlag } from "./command.ts";
import { describeNoResponse, findToken, requireToken } from "./service-client.ts";
import { onStopSignal } from "./stop-signals.ts";

export const checkCommand: Command = {
  name: "check",
  summary: "Check a running service against its contract, in an empty garden.",
  words: ["[URL]"],
  flags: {
    only: {
      placeholder: "TOPIC",
      help: "check one topic only, such as list or tokens",
      fallback: "all",
    },
    slow: { help: "include the 15-second checks" },
    json: jsonFlag,
  },
  settings: ["url"],
  variables: {
    PLANTSTORE_TOKEN: "a token that may write, to an empty garden",
    PLANTSTORE_TOKEN_2: "a token to another empty garden, to check that gardens are separate",
    PLANTSTORE_TOKEN_READ: "a read-only token, to check that it can't write",
  },
  examples: [
    "PLANTSTORE_TOKEN=… plantstore check https://plants.example/v1",
    "plantstore check http://127.0.0.1:8080 --only list --json",
  ],
  async run(call) {
    const { terminal } = call;
    const interruption = new AbortController();
    const options = { ...readOptions(call), signal: interruption.signal };
    const { url, rows } = options;
    const isJson = call.flags.json === true;
    const startedAtMs = performance.now();
    let topic = "";
    const show = (row: RowResult) => {
      if (topic === "") terminal.out(`${url}, checked against ${rows.length} rules\n`);
      if (row.topic !== topic) terminal.out(`\n${row.topic}\n`);
      topic = row.topic;
      terminal.out(renderRow(row));
    };
    const stopListening = onStopSignal(() => {
      terminal.say("Stopping. Deleting what was created.");
      interruption.abort();
    });
    try {
      const result = await runCheck(options, isJson ? undefined : show);
      const took = renderDuration(performance.now() - startedAtMs);
      terminal.out(isJson ? renderJson(url, result) : renderSummary(result, took));
      if (result.isInterrupted) terminal.say("plantstore: Interrupted before the last rule.");
      const { leftBehind } = result;
      if (leftBehind.length > 0) {
        terminal.say(`plantstore: Not deleted: ${leftBehind.join(", ")}.`);
      }
      return chooseExitCode(result);
    } catch (error) {
      throw toCliError(error, url);
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
  const url =
    address === undefined
      ? readSetting("url", call.flags, call.terminal.env)
      : parseText("URL", address, settings.url);
  const tokens = {
    write: requireToken(call),
    second: findToken(call.terminal.env, tokenVariables.second),
    read: findToken(call.terminal.env, tokenVariables.read),
  };
  const topic = readFlag(call, "only", choice(...topics));
  const rows = topic === undefined ? contract : contract.filter((row) => row.topic === topic);
  return { url, tokens, rows, isSlow: call.flags.slow === true };
}

const cannotCheckCodes = {
  "token-refused": exitCodes.tokenRefused,
  "not-empty": exitCodes.usage,
  unusable: exitCodes.failed,
} as const;

function toCliError(error: unknown, url: string): unknown {
  if (error instanceof NoResponse) {
    return new CliError(describeNoResponse(url, error), exitCodes.unavailable);
  }
  if (!(error instanceof CannotCheck)) return error;
  return new CliError(error.message, cannotCheckCodes[error.reason]);
}

const signs = { passed: "✓", failed: "✗", skipped: "–" } as const;

/** What a service sends may hold anything. */
function renderRow({ rule, outcome, reason = "", request, response }: RowResult): string {
  if (outcome !== "failed") {
    return `  ${signs[outcome]} ${rule}${outcome === "skipped" ? ` (${reason})` : ""}\n`;
  }
  const lines = [reason, ...quote(">", request), ...quote("<", response)];
  const details = lines.map((line) => `      ${showSafely(line)}`.trimEnd());
  return `${[`  ${signs.failed} ${rule}`, ...details].join("\n")}\n`;
}

function quote(sign: string, text = ""): string[] {
  const lines = text.trimEnd().split(/\r?\n/);
  return text === "" ? [] : lines.map((line) => `${sign} ${line}`);
}

function countOutcomes({ results }: CheckResult) {
  const count = (outcome: string) => results.filter((row) => row.outcome === outcome).length;
  return { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
}

function renderSummary(result: CheckResult, took: string): string {
  const { passed, failed, skipped } = countOutcomes(result);
  const lines = ["", `${passed} passed, ${failed} failed, ${skipped} skipped, in ${took}.`];
  if (result.waitedSeconds > 0) {
    const waited = renderDuration(result.waitedSeconds * 1_000);
    lines.push(`Waited ${waited} in total for the service's rate limit.`);
  }
  if (result.leftBehind.length === 0) lines.push("What was created is deleted again.");
  return `${lines.join("\n")}\n`;
}

function renderJson(url: string, result: CheckResult): string {
  const { results: rules, ...others } = result;
  const report = { url, ...countOutcomes(result), ...others, rules };
  return `${JSON.stringify(report, null, 2)}\n`;
}
