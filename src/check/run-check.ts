/** The contract, and the check of a running service against it, row by row; then it cleans up. */
import type { Row } from "./row.ts";
import { rows as createRows } from "./rows/create.ts";
import { rows as eventRows } from "./rows/events.ts";
import { rows as limitRows } from "./rows/limits-and-health.ts";
import { rows as listRows } from "./rows/list-and-delete.ts";
import { rows as plantRows } from "./rows/plant.ts";
import { rows as putRows } from "./rows/put.ts";
import { rows as requestRows } from "./rows/requests.ts";
import { rows as responseRows } from "./rows/responses.ts";
import { rows as searchRows } from "./rows/search.ts";
import { rows as tokenRows } from "./rows/tokens.ts";
import { runRow, Skipped } from "./run-row.ts";
import { CannotCheck, Service, Violation } from "./service.ts";
import { TestGardens, type Tokens, tokenVariables } from "./test-gardens.ts";
import { NoResponse } from "./wire.ts";

export { CannotCheck, NoResponse, type Tokens, tokenVariables };

/** Every promise of the interface that a client can see, by topic. */
export const contract: readonly Row[] = [
  ...requestRows,
  ...plantRows,
  ...createRows,
  ...listRows,
  ...searchRows,
  ...putRows,
  ...eventRows,
  ...tokenRows,
  ...responseRows,
  ...limitRows,
];

export const topics: readonly string[] = [...new Set(contract.map(({ topic }) => topic))];

export interface CheckOptions {
  /** Where the service is, with its base path. */
  readonly url: string;
  readonly tokens: Tokens;
  readonly rows: readonly Row[];
  readonly isSlow: boolean;
  /** Ends the check early. It still deletes what it created. */
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
  readonly response?: string;
}

export interface CheckResult {
  readonly results: readonly RowResult[];
  /** What could not be deleted. */
  readonly leftBehind: readonly string[];
  readonly isInterrupted: boolean;
  /** How long the check waited for the rate limit. */
  readonly waitedSeconds: number;
}

/** Cleaning up goes on after an interruption, but not forever. */
const cleanUpMs = 30_000;
/** After this many rows in succession without a response, the others are skipped. */
const silentRowsMax = 5;

/**
 * `report` gets each result as soon as it is known. Fails with `CannotCheck`, or with `NoResponse`
 * if the service can't be reached.
 */
export async function runCheck(
  options: CheckOptions,
  report: (result: RowResult) => void = () => {},
): Promise<CheckResult> {
  const { url, tokens, signal, isSlow } = options;
  const service = new Service(url, signal);
  const gardens = new TestGardens(service, tokens);
  const results: RowResult[] = [];
  let silentRows = 0;
  try {
    await gardens.open();
  } catch (error) {
    if (!signal.aborted) throw error;
    return { results, leftBehind: [], isInterrupted: true, waitedSeconds: service.waitedSeconds };
  }
  for (const row of options.rows) {
    const error =
      silentRows < silentRowsMax
        ? await runRow(row, { service, gardens, isSlow }).catch((error: Error) => error)
        : new Skipped("the service no longer responds");
    if (signal.aborted) break;
    if (error instanceof NoResponse) silentRows++;
    else if (!(error instanceof Skipped)) silentRows = 0;
    const finding = error ? toFinding(error, row) : { outcome: "passed" as const };
    const result = { topic: row.topic, rule: row.rule, ...present(finding, tokens) };
    results.push(result);
    await gardens.empty().catch(() => {});
    // Last, because the caller may stop the check here.
    report(result);
  }
  service.signal = AbortSignal.timeout(cleanUpMs);
  const leftBehind = await gardens.finish();
  const { waitedSeconds } = service;
  return { results, leftBehind, isInterrupted: signal.aborted, waitedSeconds };
}

type Finding = Omit<RowResult, "topic" | "rule">;

function toFinding(error: Error, { hint }: Row): Finding {
  const { message: reason } = error;
  if (error instanceof Skipped) return { outcome: "skipped", reason };
  if (error instanceof NoResponse) {
    const known = hint ? `${reason}; ${hint}` : reason;
    return { outcome: "failed", reason: `no response: ${known}`, request: error.request };
  }
  if (!(error instanceof Violation)) {
    return { outcome: "failed", reason: `the response makes no sense (${reason})` };
  }
  const { request, whole } = error.response;
  return { outcome: "failed", reason, request, response: whole };
}

/** Masks tokens, since anyone may see a report; then cuts, so that no token is cut in two. */
function present(finding: Finding, tokens: Tokens): Finding {
  const show = (_key: string, value: unknown) =>
    typeof value === "string" ? abbreviate(maskTokens(value, tokens)) : value;
  return JSON.parse(JSON.stringify(finding, show));
}

const shownCharactersMax = 600;

function abbreviate(text: string): string {
  if (text.length <= shownCharactersMax) return text;
  return `${text.slice(0, shownCharactersMax)}… (${text.length} characters)`;
}

/** Even with one character changed, as a row sends it: the rest gives the token away. */
function maskTokens(text: string, tokens: Tokens): string {
  let masked = text.replace(/^(Authorization: (?:\w+ )?).*$/gim, "$1…");
  for (const token of [tokens.write, tokens.second, tokens.read]) {
    if (token === undefined) continue;
    // The first 12 characters tell a token apart from everything else.
    const start = RegExp.escape(token.slice(0, 12));
    masked = masked.replace(new RegExp(`${start}[\\w.~+/=-]*`, "g"), "…");
  }
  return masked;
}
