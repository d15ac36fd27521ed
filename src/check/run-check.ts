/** Checks a running service against its contract, row by row, and cleans up. */

import { Interrupted, Service, Unanswered } from "./checked-service.ts";
import type { Row } from "./row.ts";
import { type Gardens, idsOfRow, type RowContext, runRow, Skipped, Violation } from "./run-row.ts";
import { CannotList, TestGarden } from "./test-garden.ts";

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

/** The check cannot begin. */
export class CannotCheck extends Error {
  readonly reason: "unreachable" | "token-refused" | "no-room" | "unusable";
  /** The system's code for the failure, if it has one. */
  readonly code: string | undefined;

  constructor(reason: CannotCheck["reason"], message: string, code?: string) {
    super(message);
    this.reason = reason;
    this.code = code;
  }
}

/** Cleaning up goes on after an interruption, but not for ever. */
const cleanUpMs = 30_000;

/** `report` gets each result as soon as it is known. Fails with `CannotCheck`. */
export async function runCheck(
  options: CheckOptions,
  report: (result: RowResult) => void = () => {},
): Promise<CheckResult> {
  const { url, tokens, timeoutMs, signal } = options;
  const service = new Service(url, timeoutMs, signal);
  const { write, second, read } = tokens;
  const gardens: Gardens = {
    write: new TestGarden(service, write, "the token"),
    ...(second && { second: new TestGarden(service, second, "the second token (--token-2)") }),
    ...(read && { read: new TestGarden(service, read, "the third token (--token-read)") }),
  };
  const all: TestGarden[] = Object.values(gardens);
  const results: RowResult[] = [];
  const leftBehind: string[] = [];
  const firstId = await begin(service, gardens, tokens);
  if (firstId !== undefined) {
    let nextIds = (firstId / idsOfRow) * idsOfRow;
    const takeIds = () => (nextIds += idsOfRow);
    const context = { service, gardens, isSlow: options.isSlow, takeIds };
    let silences = 0;
    for (const row of options.rows) {
      const outcome = silences < silencesMax ? await judge(row, context) : skippedAsSilent;
      if (signal.aborted) break;
      if (silences < silencesMax) silences = outcome.isSilent ? silences + 1 : 0;
      const result = present(row, outcome, tokens);
      results.push(result);
      for (const garden of all) await garden.cleanUp().catch(() => {});
      // Last, because everything may end here: nobody reads the report any longer.
      report(result);
    }
    service.stopOn(AbortSignal.timeout(cleanUpMs));
    for (const garden of all) leftBehind.push(...(await garden.finish()));
  }
  const { waitedSeconds } = service;
  return { results, leftBehind, isInterrupted: signal.aborted, waitedSeconds };
}

/** Ids here stay clear of those that the service assigns. */
const preferredIds = [2n ** 52n, 2n ** 53n, 2n ** 60n, 2n ** 62n, 2n ** 63n - 2n ** 40n];
const spreadIds = 2 ** 39;

/** The id from which on all are free, so that lists have an end; none if interrupted. */
async function begin(
  service: Service,
  gardens: Gardens,
  tokens: Tokens,
): Promise<bigint | undefined> {
  try {
    const firstId = await claimIds(Object.values(gardens));
    // Of nothing, so that nothing changes.
    const headers = { Authorization: `Bearer ${tokens.write}` };
    const { status } = await service.send(`DELETE /plants/${firstId}`, { headers });
    if (status === 403) throw new CannotCheck("token-refused", "The token may only read.");
    return firstId;
  } catch (error) {
    if (error instanceof Interrupted) return undefined;
    if (error instanceof Unanswered) {
      const reason = abbreviate(maskText(error.message, tokens));
      throw new CannotCheck("unreachable", `There is no response: ${reason}.`, error.code);
    }
    throw error instanceof CannotList ? explainList(error) : error;
  }
}

async function claimIds(gardens: readonly TestGarden[]): Promise<bigint> {
  let obstacle = "";
  for (const start of preferredIds) {
    const from = start + BigInt(Math.floor(Math.random() * spreadIds));
    const found = await Promise.all(gardens.map((garden) => garden.findAfter(from - 1n)));
    const plant = found.find((each) => each !== undefined);
    if (plant === undefined) {
      for (const garden of gardens) garden.claimFrom(from);
      return from;
    }
    obstacle = `the plant ${plant.id} (${plant.name}) comes after all ids that could be used`;
  }
  throw new CannotCheck("no-room", `No free ids: ${obstacle}. Use a token to another garden.`);
}

function explainList({ response: { status }, label }: CannotList): CannotCheck {
  if (status === 401) return new CannotCheck("token-refused", `The service refuses ${label}.`);
  return new CannotCheck(
    "unusable",
    `GET /plants with limit, after and fields must be 200 with an array, but is ${status}. ` +
      "Without it no free ids can be found.",
  );
}

type Outcome = Omit<RowResult, "topic" | "rule"> & { readonly isSilent?: boolean };

const silencesMax = 5;
const skippedAsSilent: Outcome = { outcome: "skipped", reason: "the service no longer responds" };

async function judge(row: Row, context: RowContext): Promise<Outcome> {
  try {
    await runRow(row, context);
    return { outcome: "passed" };
  } catch (error) {
    const { message: reason } = error as Error;
    if (error instanceof Skipped) return { outcome: "skipped", reason };
    if (error instanceof Unanswered) {
      const { request } = error;
      return { outcome: "failed", reason: `no response: ${reason}`, request, isSilent: true };
    }
    if (!(error instanceof Violation || error instanceof CannotList)) {
      return { outcome: "failed", reason: `the response makes no sense (${reason})` };
    }
    const { request, whole } = error.response;
    return { outcome: "failed", reason, request, answer: whole };
  }
}

const shownCharactersMax = 600;

/** Masks tokens, since a report may be shown to anybody; cuts then, not through a token. */
function present(row: Row, { isSilent: _, ...outcome }: Outcome, tokens: Tokens): RowResult {
  const mask = (_key: string, value: unknown) =>
    typeof value === "string" ? maskText(value, tokens) : value;
  const masked: Outcome = JSON.parse(JSON.stringify(outcome, mask));
  const { reason, request, answer } = masked;
  return {
    topic: row.topic,
    rule: row.name,
    ...masked,
    ...(reason !== undefined && { reason: abbreviate(reason) }),
    ...(request !== undefined && { request: abbreviateBody(request) }),
    ...(answer !== undefined && { answer: abbreviate(answer) }),
  };
}

function abbreviate(text: string): string {
  if (text.length <= shownCharactersMax) return text;
  return `${text.slice(0, shownCharactersMax)}… (${text.length} characters)`;
}

/** The head of a request is what a reader needs to send it again. */
function abbreviateBody(request: string): string {
  const bodyStart = request.indexOf("\n\n") + 2;
  return request.slice(0, bodyStart) + abbreviate(request.slice(bodyStart));
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
