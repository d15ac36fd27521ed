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
import { type RowContext, runRow, Skipped, StorageFull } from "./run-row.ts";
import { CannotCheck, Service, Violation } from "./service.ts";
import { TestGardens, type Tokens, tokenVariables } from "./test-gardens.ts";
import { NoResponse } from "./wire.ts";

export { CannotCheck, type Tokens, tokenVariables };

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
  readonly answer?: string;
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

/** `report` gets each result as soon as it is known. Fails with `CannotCheck`. */
export async function runCheck(
  options: CheckOptions,
  report: (result: RowResult) => void = () => {},
): Promise<CheckResult> {
  const { url, tokens, signal, isSlow } = options;
  const service = new Service(url, signal);
  const gardens = new TestGardens(service, tokens);
  const run = createRowRunner({ service, gardens, isSlow });
  const results: RowResult[] = [];
  const leftBehind: string[] = [];
  if (await isOpened(gardens, signal)) {
    for (const row of options.rows) {
      const finding = await run(row);
      if (signal.aborted) break;
      const result = { topic: row.topic, rule: row.rule, ...present(finding, tokens) };
      results.push(result);
      await gardens.empty().catch(() => {});
      // Last, because the caller may stop the check here.
      report(result);
    }
    service.signal = AbortSignal.timeout(cleanUpMs);
    leftBehind.push(...(await gardens.finish()));
  }
  const { waitedSeconds } = service;
  return { results, leftBehind, isInterrupted: signal.aborted, waitedSeconds };
}

/** False after an interruption. Fails with `CannotCheck`. */
async function isOpened(gardens: TestGardens, signal: AbortSignal): Promise<boolean> {
  try {
    await gardens.open();
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    if (!(error instanceof NoResponse)) throw error;
    const reason = abbreviate(maskTokens(error.message, gardens.tokens));
    throw new CannotCheck("unreachable", reason, error.code);
  }
}

type Finding = Omit<RowResult, "topic" | "rule">;

/** Reports a full garden or a dead service once, and skips later rows. */
function createRowRunner(context: RowContext): (row: Row) => Promise<Finding> {
  let silentRows = 0;
  let isFull = false;
  return async (row) => {
    if (silentRows >= silentRowsMax) {
      return { outcome: "skipped", reason: "the service no longer responds" };
    }
    const error = await runRow(row, context).catch((error: Error) => error);
    silentRows = error instanceof NoResponse ? silentRows + 1 : 0;
    if (error instanceof StorageFull && isFull) {
      return { outcome: "skipped", reason: "the garden is full" };
    }
    isFull ||= error instanceof StorageFull;
    return error ? toFinding(error, row) : { outcome: "passed" };
  };
}

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
  return { outcome: "failed", reason, request, answer: whole };
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
function maskTokens(text: string, { write, second, read }: Tokens): string {
  let masked = text.replace(/^(Authorization: (?:\w+ )?).*$/gim, "$1…");
  for (const token of [write, second, read]) {
    if (token === undefined) continue;
    // The first 12 characters tell a token apart from everything else.
    const [first = "", ...others] = masked.replaceAll(token, "…").split(token.slice(0, 12));
    masked = first + others.map((part) => `…${part.replace(/^[\w.~+/=-]+/, "")}`).join("");
  }
  return masked;
}
