/** Runs one row of the table: fills in its placeholders, sends its requests, compares responses. */
import { rawNumber, type Service, type ServiceResponse, Violation } from "./checked-service.ts";
import { findMismatch } from "./expectation.ts";
import { closed, type Expected, type Row, type Sent, type Step } from "./row.ts";
import { nameMark, type TestGarden } from "./test-garden.ts";
import { NoResponse } from "./wire.ts";

/** The row can't be checked here; the message says why, or what it needs. */
export class Skipped extends Error {}

export interface Gardens {
  readonly write: TestGarden;
  readonly second?: TestGarden;
  readonly read?: TestGarden;
}

const needs = {
  second: "needs --token-2, a token to another garden",
  read: "needs --token-read, a token that may only read",
};

export interface RowContext {
  readonly service: Service;
  readonly gardens: Gardens;
  readonly isSlow: boolean;
  /** Gives a row its ids: from here on `idsOfRow` are free. */
  readonly takeIds: () => bigint;
}

/** Ids are handed out in thousands, so that one of them ends in 000. */
export const idsOfRow = 1_000n;

/** Fails with `Violation`, `Skipped`, or as `Service.send` does. */
export async function runRow(row: Row, context: RowContext): Promise<void> {
  const { gardens } = context;
  if (row.isSlow && !context.isSlow) throw new Skipped("takes 15 seconds; ask for it with --slow");
  for (const [sent] of row.steps) {
    const { token } = typeof sent === "string" ? {} : sent;
    if (token && token !== "none" && !gardens[token]) throw new Skipped(needs[token]);
  }
  if (row.freeId !== undefined && (await gardens.write.find(BigInt(row.freeId)))) {
    throw new Skipped("the garden has such a plant");
  }
  for (const value of row.each ?? [""]) {
    const run = new RowRun(context, value);
    for (const step of row.steps) await run.step(step);
  }
}

/** A row with one of its values, and the responses so far. */
class RowRun {
  readonly #service: Service;
  readonly #gardens: Gardens;
  readonly #values: Record<string, string>;
  readonly #responses: ServiceResponse[] = [];

  constructor({ service, gardens, takeIds }: RowContext, value: string) {
    this.#service = service;
    this.#gardens = gardens;
    this.#values = {
      each: value,
      base: service.basePath,
      host: service.host,
      name: nameMark,
      key: crypto.randomUUID(),
      ...tokensFrom(gardens.write.token),
      ...idsFrom(takeIds()),
    };
  }

  async step([sent, expectation]: Step): Promise<void> {
    const parts = typeof sent === "string" ? { request: sent } : sent;
    const { atOnce = 1 } = parts;
    const before = this.#responses.at(-1);
    const sending = Array.from({ length: atOnce }, () => this.#send(parts));
    const wanted = typeof expectation === "number" ? { status: expectation } : expectation;
    const responses = await Promise.all(sending).catch((error) => expectClosed(error, wanted));
    const expected = this.#fillIn(wanted) as Expected;
    for (const response of responses) {
      const reason = expected.skip?.(response);
      if (reason !== undefined) throw new Skipped(reason);
      const mismatch =
        findMismatch(response, expected, atOnce === 1 ? before : responses[0]) ??
        expected.check?.(response, this.#responses);
      if (mismatch !== undefined) throw new Violation(mismatch, response);
    }
  }

  async #send(sent: Sent): Promise<ServiceResponse> {
    const { token = "write", timeoutMs } = sent;
    const request = this.#fill(sent.request);
    const body = this.#renderBody(sent);
    const garden = token === "none" ? undefined : this.#gardens[token];
    const headers = {
      ...(garden && { Authorization: `Bearer ${garden.token}` }),
      ...(body && { "Content-Type": "application/json" }),
      ...(body && !sent.chunks && { "Content-Length": String(body.length) }),
      ...(sent.chunks && { "Transfer-Encoding": "chunked" }),
      ...(this.#fillIn(sent.headers) as Sent["headers"]),
    };
    const sending = this.#service.send(request, { headers, body, timeoutMs });
    const response = await sending.catch((error: unknown) => error as Error);
    const answered = response instanceof Error ? undefined : response;
    // A broken service may create a plant without a token, too.
    if (request.startsWith("POST ")) (garden ?? this.#gardens.write).note(String(body), answered);
    if (response instanceof Error) throw response;
    this.#remember(response);
    return response;
  }

  #remember(response: ServiceResponse): void {
    this.#responses.push(response);
    if (response.locatedId !== undefined) this.#values.assigned = String(response.locatedId);
    const [, target] = /^<([^>]*)>\s*;\s*rel="?next"?$/.exec(response.header("Link") ?? "") ?? [];
    if (target === undefined) return;
    const { pathname, search } = new URL(target, `http://${this.#service.host}`);
    const { basePath } = this.#service;
    if (pathname === `${basePath}/plants`) this.#values.next = `/plants${search}`;
    else throw new Violation(`Link must lead to ${basePath}/plants`, response);
  }

  /** Twice, because `{each}` may hold others. */
  #fill(text: string): string {
    const once = (part: string) =>
      part.replace(/\{([\w+-]+)\}/g, (whole, name) => this.#values[name] ?? whole);
    return once(once(text));
  }

  /** Fills in all texts of a value; an id becomes a number with all its digits. */
  #fillIn(value: unknown, key = ""): unknown {
    if (typeof value === "string") {
      const text = this.#fill(value);
      return key === "id" && value.startsWith("{") ? rawNumber(text) : text;
    }
    if (Array.isArray(value)) return value.map((item) => this.#fillIn(item));
    if (typeof value !== "object" || value?.constructor !== Object) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, this.#fillIn(part, name)]),
    );
  }

  #renderBody({ body, bytes, chunks, padTo = 0 }: Sent): Buffer | undefined {
    if (bytes !== undefined) return Buffer.from(this.#fill(bytes), "latin1");
    if (typeof body === "string") return Buffer.from(this.#fill(body).padEnd(padTo));
    if (body) return Buffer.from(JSON.stringify(this.#fillIn(body)).padEnd(padTo));
    const filled = chunks?.map((chunk) => this.#fill(chunk));
    const rendered = filled?.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    return rendered && Buffer.from(rendered.join(""));
  }
}

const farIds = 10n ** 18n;

function idsFrom(first: bigint): Record<string, string> {
  // Odd, so that no double is equal to it.
  const far = (first > farIds ? first + 100n : farIds + first) | 1n;
  const ids: Record<string, bigint> = {
    before: first,
    gap: first + 3n,
    round: first,
    thousands: first / idsOfRow,
    far,
    "far+1": far + 1n,
    over: 2n ** 64n + first + 2n,
    under: first + 2n - 2n ** 64n,
  };
  for (let number = 1; number <= 9; number++) ids[number] = first + 2n * BigInt(number);
  return Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, String(id)]));
}

/** Not the last character: of a JWT's, some bits count for nothing. */
function tokensFrom(token: string): Record<string, string> {
  const change = (at: number) =>
    `${token.slice(0, at)}${token[at] === "a" ? "b" : "a"}${token.slice(at + 1)}`;
  return {
    token,
    "token-mid": change(Math.floor(token.length / 2)),
    "token-end": change(token.length - 2),
    "token-cut": token.slice(0, -1),
  };
}

/** A service may close the connection instead of sending a response, where the row says so. */
function expectClosed(error: unknown, { status }: Expected): [] {
  const mayClose = Array.isArray(status) && status.includes(closed);
  if (mayClose && error instanceof NoResponse && error.message.includes("closed")) return [];
  throw error;
}
