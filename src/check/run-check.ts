/**
 * Holds a service against the rules of the interface, one by one, and leaves its gardens as they
 * were.
 */

import { abbreviate, Interrupted, Line, Unanswered } from "./line.ts";
import { Skipped, Violation } from "./outcome.ts";
import { Probe, type Tokens } from "./probe.ts";
import type { Rule, Topic } from "./rule.ts";
import { CannotList } from "./tended-garden.ts";

export interface CheckOptions {
  /** Where the service is, with its base path. */
  readonly url: string;
  readonly tokens: Tokens;
  readonly rules: readonly Rule[];
  /** How long an answer may take. */
  readonly timeoutMs: number;
  /** Whether rules run that take long. */
  readonly isSlow: boolean;
  /** Ends the check early; what was created is deleted all the same. */
  readonly signal: AbortSignal;
}

export interface RuleResult {
  readonly topic: Topic;
  readonly rule: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** What was expected and what came, or why it was skipped. */
  readonly reason?: string;
  /** What was sent, without tokens. */
  readonly request?: string;
  readonly answer?: string;
}

export interface CheckResult {
  readonly results: readonly RuleResult[];
  /** What could not be deleted. */
  readonly leftBehind: readonly string[];
  readonly isInterrupted: boolean;
  /** How long the service's rate limit had the check wait. */
  readonly waitedSeconds: number;
}

/** The check cannot begin. */
export class CannotCheck extends Error {
  readonly reason: "unreachable" | "token-refused" | "no-room" | "unusable";
  /** Of the failure, where the system has one for it. */
  readonly code: string | undefined;

  constructor(reason: CannotCheck["reason"], message: string, code?: string) {
    super(message);
    this.reason = reason;
    this.code = code;
  }
}

/** How long the check takes at most to delete what it created, once it was told to stop. */
const cleanUpMs = 30_000;

/** `tell` hears of each rule as it ends. Fails with `CannotCheck`. */
export async function runCheck(
  options: CheckOptions,
  tell: (result: RuleResult) => void = () => {},
): Promise<CheckResult> {
  const { url, tokens, timeoutMs, signal } = options;
  const line = new Line(url, timeoutMs, signal);
  const probe = new Probe(line, tokens, options.isSlow);
  const results: RuleResult[] = [];
  if (!(await begin(probe, tokens))) {
    return { results, leftBehind: [], isInterrupted: true, waitedSeconds: line.waitedSeconds };
  }
  let silences = 0;
  for (const rule of options.rules) {
    const outcome = silences < silencesMax ? await judge(rule, probe) : skipAsSilent;
    if (signal.aborted) break;
    const isSilent = outcome.reason?.startsWith(noAnswer) === true;
    if (silences < silencesMax) silences = isSilent ? silences + 1 : 0;
    const result = maskTokens({ topic: rule.topic, rule: rule.name, ...outcome }, tokens);
    results.push(result);
    for (const garden of probe.touchedGardens) await garden.cleanUp().catch(() => {});
    // Last: all may end here, because nobody reads the report on.
    tell(result);
  }
  // Deleting goes on when the check was told to stop, but not for ever.
  line.stopOn(AbortSignal.timeout(cleanUpMs));
  const leftBehind = await cleanUp(probe);
  const { waitedSeconds } = line;
  return { results, leftBehind, isInterrupted: signal.aborted, waitedSeconds };
}

/** Whether the check can go on. */
async function begin(probe: Probe, tokens: Tokens): Promise<boolean> {
  try {
    const obstacle = await probe.claimIds();
    if (obstacle !== undefined) {
      throw new CannotCheck("no-room", `No free ids: ${obstacle}. Use a token to another garden.`);
    }
    // Of nothing, so that nothing changes.
    const { status } = await probe.garden.delete(probe.freshId());
    if (status === 403) throw new CannotCheck("token-refused", "The token may only read.");
    return true;
  } catch (error) {
    if (error instanceof Interrupted) return false;
    if (error instanceof Unanswered) {
      const reason = abbreviate(maskText(error.message, tokens));
      throw new CannotCheck("unreachable", `There is no answer: ${reason}.`, error.code);
    }
    if (!(error instanceof CannotList)) throw error;
    const { status, request } = error.answer;
    if (status === 401) {
      const isSecond = tokens.second !== undefined && request.includes(tokens.second);
      const which = isSecond ? "the second token (--token-2)" : "the token";
      throw new CannotCheck("token-refused", `The service refuses ${which}.`);
    }
    throw new CannotCheck(
      "unusable",
      `GET /plants with limit, after and fields must be 200 with an array, but is ${status}. ` +
        "Without it no free ids can be found.",
    );
  }
}

type Outcome = Omit<RuleResult, "topic" | "rule">;

const noAnswer = "no answer: ";
const silencesMax = 5;
const skipAsSilent: Outcome = { outcome: "skipped", reason: "the service no longer answers" };

async function judge(rule: Rule, probe: Probe): Promise<Outcome> {
  try {
    await rule.run(probe);
    return { outcome: "passed" };
  } catch (error) {
    if (error instanceof Skipped) return { outcome: "skipped", reason: error.message };
    return { outcome: "failed", ...explain(error as Error) };
  }
}

function explain(error: Error): Pick<RuleResult, "reason" | "request" | "answer"> {
  if (error instanceof Unanswered) {
    return { reason: noAnswer + error.message, request: error.request };
  }
  const isAnswered = error instanceof Violation || error instanceof CannotList;
  const answer = isAnswered ? error.answer : undefined;
  const reason = isAnswered ? error.message : `the answer makes no sense (${error.message})`;
  if (!answer) return { reason };
  return { reason, request: answer.request, answer: answer.whole };
}

/** A service that is broken may say that a plant is gone, so the last word has the list. */
async function cleanUp(probe: Probe): Promise<string[]> {
  const left: string[] = [];
  for (const garden of probe.touchedGardens) {
    await garden.sweep().catch(() => {});
    await garden.cleanUp().catch(() => {});
    await garden.sweep().catch(() => {});
    left.push(...garden.leftBehind);
  }
  return left;
}

/** How many letters of a token tell it apart from all else. */
const knownStart = 12;

/** Tokens are secrets, and a report may be shown to anybody. */
function maskText(text: string, { first, second, read }: Tokens): string {
  const known = [first, second, read].filter((token) => token !== undefined);
  return known.reduce(maskToken, text).replace(/^(Authorization: (?:\w+ )?).*$/gim, "$1…");
}

/** Also with a letter changed or cut off, as rules send it: who has that one can guess the rest. */
function maskToken(text: string, token: string): string {
  const [first = "", ...others] = text.replaceAll(token, "…").split(token.slice(0, knownStart));
  return first + others.map((part) => `…${part.replace(/^[\w.~+/=-]+/, "")}`).join("");
}

function maskTokens(result: RuleResult, tokens: Tokens): RuleResult {
  const mask = (_key: string, value: unknown) =>
    typeof value === "string" ? maskText(value, tokens) : value;
  const masked: RuleResult = JSON.parse(JSON.stringify(result, mask));
  const { request, answer } = masked;
  // Cut only now: half a token would not be known for one.
  return {
    ...masked,
    ...(request !== undefined && { request: abbreviateBody(request) }),
    ...(answer !== undefined && { answer: abbreviate(answer) }),
  };
}

/** The head of a request is what a reader needs to send it again. */
function abbreviateBody(request: string): string {
  const bodyStart = request.indexOf("\n\n") + 2;
  return request.slice(0, bodyStart) + abbreviate(request.slice(bodyStart));
}
