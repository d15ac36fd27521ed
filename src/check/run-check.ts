/** Checks a running service against its contract, row by row, and cleans up. */
import { Interrupted, Service, Violation } from "./checked-service.ts";
import type { Row } from "./row.ts";
import { type Gardens, idsOfRow, type RowContext, runRow, Skipped } from "./run-row.ts";
import { TestGarden } from "./test-garden.ts";
import { NoResponse } from "./wire.ts";

export interface Tokens {
  /** May write. */
  readonly write: string;
  /** Opens another garden. */
  readonly second?: string | undefined;
  /** May only read. */
  readonly read?: string | undefined;
}

export interface CheckOptions {
  /** Where the service is, with its base path. */
  readonly url: string;
  readonly tokens: Tokens;
  readonly rows: readonly Row[];
  /** How long a response may take. */
  readonly timeoutMs: number;
  readonly isSlow: boolean;
  /** Ends the check early; what was created is deleted all the same. */
  readonly signal: AbortSignal;
}

export interface RowResult {
  readonly topic: string;
  readonly rule: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** What was expected and what came, or why it was skipped. */
  readonly reason?: string;
  /** What was sent, without tokens. */
  readonly request?: string;
  readonly answer?: string;
}

export interface CheckResult {
  readonly results: readonly RowResult[];
  /** What could not be deleted. */
  readonly leftBehind: readonly string[];
  readonly isInterrupted: boolean;
  /** How long the service's rate limit had the check wait. */
  readonly waitedSeconds: number;
}

/** The check can't begin. */
export class CannotCheck extends Error {
  /** `code` is the system's, such as `ECONNREFUSED`. */
  constructor(
    readonly reason: "unreachable" | "token-refused" | "no-room" | "unusable",
    message: string,
    readonly code?: string,
  ) {
    super(message);
  }
}

/** Cleaning up goes on after an interruption, but not for ever. */
const cleanUpMs = 30_000;
/** After so many rows without a response the others are skipped. */
const silentRowsMax = 5;

/** `report` gets each result as soon as it is known. Fails with `CannotCheck`. */
export async function runCheck(
  options: CheckOptions,
  report: (result: RowResult) => void = () => {},
): Promise<CheckResult> {
  const { url, tokens, timeoutMs, signal, isSlow } = options;
  const service = new Service(url, timeoutMs, signal);
  const { write, second, read } = tokens;
  const gardens: Gardens = {
    write: new TestGarden(service, write),
    ...(second && { second: new TestGarden(service, second) }),
    ...(read && { read: new TestGarden(service, read) }),
  };
  const all: TestGarden[] = Object.values(gardens);
  const results: RowResult[] = [];
  const leftBehind: string[] = [];
  const firstId = await begin(gardens, tokens);
  if (firstId !== undefined) {
    let nextIds = (firstId / idsOfRow) * idsOfRow;
    const takeIds = () => (nextIds += idsOfRow);
    let silentRows = 0;
    for (const row of options.rows) {
      const isSilent = silentRows >= silentRowsMax;
      const outcome = isSilent ? silent : await judge(row, { service, gardens, isSlow, takeIds });
      if (signal.aborted) break;
      if (!isSilent) silentRows = outcome.reason?.startsWith(noResponse) ? silentRows + 1 : 0;
      const result = { topic: row.topic, rule: row.name, ...present(outcome, tokens) };
      results.push(result);
      for (const garden of all) await garden.cleanUp().catch(() => {});
      // Last, because the caller may stop the check here.
      report(result);
    }
    service.signal = AbortSignal.timeout(cleanUpMs);
    for (const garden of all) leftBehind.push(...(await garden.finish()));
  }
  const { waitedSeconds } = service;
  return { results, leftBehind, isInterrupted: signal.aborted, waitedSeconds };
}

/** Ids here stay clear of those that the service assigns. */
const preferredIds = [2n ** 52n, 2n ** 53n, 2n ** 60n, 2n ** 62n, 2n ** 63n - 2n ** 40n];
const spreadIds = 2 ** 39;
const labels = {
  write: "the token",
  second: "the second token (--token-2)",
  read: "the third token (--token-read)",
};

/** The id from which on all are free, so that lists have an end; `undefined` if interrupted. */
async function begin(gardens: Gardens, tokens: Tokens): Promise<bigint | undefined> {
  try {
    const firstId = await claimIds(gardens);
    // There is no such plant, so nothing changes.
    const { status } = await gardens.write.send(`DELETE /plants/${firstId}`);
    if (status === 403) throw new CannotCheck("token-refused", "The token may only read.");
    return firstId;
  } catch (error) {
    if (error instanceof Interrupted) return undefined;
    if (!(error instanceof NoResponse)) throw error;
    const reason = abbreviate(maskText(error.message, tokens));
    throw new CannotCheck("unreachable", `There is no response: ${reason}.`, error.code);
  }
}

async function claimIds(gardens: Gardens): Promise<bigint> {
  const entries = Object.entries(gardens) as [keyof Gardens, TestGarden][];
  let obstacle = "";
  for (const start of preferredIds) {
    const from = start + BigInt(Math.floor(Math.random() * spreadIds));
    obstacle = "";
    for (const [name, garden] of entries) {
      const [plant] = await garden.listAfter(from - 1n).catch((error) => explain(error, name));
      if (plant) obstacle = `the plant ${plant.id} (${plant.name}) comes after all usable ids`;
      garden.freeFrom = from;
    }
    if (obstacle === "") return from;
  }
  throw new CannotCheck("no-room", `No free ids: ${obstacle}. Use a token to another garden.`);
}

function explain(error: unknown, garden: keyof Gardens): never {
  if (!(error instanceof Violation)) throw error;
  const { status } = error.response;
  if (status === 401) {
    throw new CannotCheck("token-refused", `The service refuses ${labels[garden]}.`);
  }
  const must = "GET /plants with limit, after and fields must be 200 with an array";
  const why = "Without it no free ids can be found.";
  throw new CannotCheck("unusable", `${must}, but is ${status}. ${why}`);
}

type Outcome = Omit<RowResult, "topic" | "rule">;

const silent: Outcome = { outcome: "skipped", reason: "the service no longer responds" };
const noResponse = "no response: ";

async function judge(row: Row, context: RowContext): Promise<Outcome> {
  try {
    await runRow(row, context);
    return { outcome: "passed" };
  } catch (error) {
    const { message: reason } = error as Error;
    if (error instanceof Skipped) return { outcome: "skipped", reason };
    if (error instanceof NoResponse) {
      return { outcome: "failed", reason: noResponse + reason, request: error.request };
    }
    if (!(error instanceof Violation)) {
      return { outcome: "failed", reason: `the response makes no sense (${reason})` };
    }
    const { request, whole } = error.response;
    return { outcome: "failed", reason, request, answer: whole };
  }
}

/** Masks tokens, since anyone may see a report; then cuts, so that no token is cut in two. */
function present(outcome: Outcome, tokens: Tokens): Outcome {
  const show = (_key: string, value: unknown) =>
    typeof value === "string" ? abbreviate(maskText(value, tokens)) : value;
  return JSON.parse(JSON.stringify(outcome, show));
}

const shownCharactersMax = 600;

function abbreviate(text: string): string {
  if (text.length <= shownCharactersMax) return text;
  return `${text.slice(0, shownCharactersMax)}… (${text.length} characters)`;
}

/** So many characters of a token tell it apart from everything else. */
const knownStart = 12;

function maskText(text: string, { write, second, read }: Tokens): string {
  const known = [write, second, read].filter((token) => token !== undefined);
  return known.reduce(maskToken, text).replace(/^(Authorization: (?:\w+ )?).*$/gim, "$1…");
}

/** Also with a character changed or cut off, as rows send it: the rest can be guessed. */
function maskToken(text: string, token: string): string {
  const [first = "", ...others] = text.replaceAll(token, "…").split(token.slice(0, knownStart));
  return first + others.map((part) => `…${part.replace(/^[\w.~+/=-]+/, "")}`).join("");
}
