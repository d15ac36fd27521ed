/** Runs one row of the table: fills in its placeholders, sends its requests, compares responses. */
import { findMismatch } from "./expectation.ts";
import { closed, type Expected, type Row, type Sent, type Step } from "./row.ts";
import { rawNumber, type Service, type ServiceResponse, Violation } from "./service.ts";
import { idsOfRow, type TestGardens } from "./test-gardens.ts";
import { NoResponse } from "./wire.ts";

/** The row can't be checked here; the message says why, or what it needs. */
export class Skipped extends Error {}

const needs = {
  second: "needs PLANTSTORE_TOKEN_2, a token to another garden",
  read: "needs PLANTSTORE_TOKEN_READ, a token that may only read",
};

interface RowContext {
  readonly service: Service;
  readonly gardens: TestGardens;
  readonly isSlow: boolean;
}

/** Fails with `Violation`, `Skipped`, or as `Service.send` does. */
export async function runRow(row: Row, context: RowContext): Promise<void> {
  if (row.isSlow && !context.isSlow) throw new Skipped("takes 15 seconds; ask for it with --slow");
  for (const [sent] of row.steps) {
    const { token } = typeof sent === "string" ? {} : sent;
    if (token && token !== "none" && !context.gardens.tokens[token])
      throw new Skipped(needs[token]);
  }
  for (const value of row.each ?? [""]) {
    const run = new RowRun(context, value);
    for (const step of row.steps) await run.step(step);
  }
}

/** A row with one of its values, and the responses so far. */
class RowRun {
  readonly #service: Service;
  readonly #gardens: TestGardens;
  readonly #values: Record<string, string>;
  readonly #responses: ServiceResponse[] = [];

  constructor({ service, gardens }: RowContext, value: string) {
    this.#service = service;
    this.#gardens = gardens;
    const { write: token } = gardens.tokens;
    this.#values = {
      each: value,
      base: service.basePath,
      host: service.host,
      name: "plantstore check",
      key: crypto.randomUUID(),
      token,
      "wrong-token": changeMiddle(token),
      ...idsFrom(gardens.takeIds()),
    };
  }

  async step([sent, expectation]: Step): Promise<void> {
    const parts = typeof sent === "string" ? { request: sent } : sent;
    const { atOnce = 1 } = parts;
    const before = this.#responses.at(-1);
    const unfilled = typeof expectation === "number" ? { status: expectation } : expectation;
    const sending = Array.from({ length: atOnce }, () => this.#send(parts));
    const responses = await Promise.all(sending).catch((error) => expectClosed(error, unfilled));
    const expected = this.#fillIn(unfilled) as Expected;
    for (const response of responses) {
      const reason = expected.skip?.(response, this.#responses);
      if (reason !== undefined) throw new Skipped(reason);
      const mismatch =
        findMismatch(response, expected, atOnce === 1 ? before : responses[0]) ??
        expected.check?.(response, this.#responses);
      if (mismatch === undefined) continue;
      const hint = response.isFromProxy ? " (without X-Request-Id: perhaps from a proxy)" : "";
      throw new Violation(mismatch + hint, response);
    }
  }

  async #send(sent: Sent): Promise<ServiceResponse> {
    const { tokens } = this.#gardens;
    const token = sent.token === "none" ? undefined : tokens[sent.token ?? "write"];
    const request = this.#fill(sent.request);
    const body = this.#renderBody(sent);
    const headers = {
      ...(token && { Authorization: `Bearer ${token}` }),
      ...(body && { "Content-Type": "application/json" }),
      ...(body && !sent.chunks && { "Content-Length": String(body.length) }),
      ...(sent.chunks && { "Transfer-Encoding": "chunked" }),
      ...(this.#fillIn(sent.headers) as Sent["headers"]),
    };
    const response = await this.#service.send(request, { headers, body, until: sent.until });
    this.#remember(response);
    return response;
  }

  #remember(response: ServiceResponse): void {
    this.#responses.push(response);
    if (response.locatedId !== undefined) this.#values.assigned = String(response.locatedId);
    if (response.json?.lastEvent !== undefined) this.#values.last = response.json.lastEvent;
    this.#values.etag = response.header("ETag") ?? this.#values.etag ?? "";
    const [, target] = /^<([^>]*)>\s*;\s*rel="?next"?$/.exec(response.header("Link") ?? "") ?? [];
    if (target === undefined) return;
    const { pathname, search } = new URL(target, `http://${this.#service.host}`);
    const sent = new URL(response.request.split(" ")[1] ?? "", `http://${this.#service.host}`);
    if (pathname !== sent.pathname)
      throw new Violation(`Link must lead to ${sent.pathname}`, response);
    this.#values.next = pathname.slice(this.#service.basePath.length) + search;
  }

  /** Twice, because the value of `{each}` may contain placeholders. */
  #fill(text: string): string {
    const once = (part: string) =>
      part.replace(/\{([\w+-]+)\}/g, (whole, name) => this.#values[name] ?? whole);
    return once(once(text));
  }

  /** Fills in all texts of a value; an id becomes a number with all its digits. */
  #fillIn(value: unknown, key = ""): unknown {
    if (typeof value === "string") {
      const text = this.#fill(value);
      const isId = idArrays.has(key) || (key === "id" && value.startsWith("{"));
      return isId ? rawNumber(text) : text;
    }
    if (Array.isArray(value)) return value.map((item) => this.#fillIn(item, key));
    if (typeof value !== "object" || value?.constructor !== Object) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, this.#fillIn(part, name)]),
    );
  }

  #renderBody({ body, bytes, chunks, padTo = 0 }: Sent): Buffer | undefined {
    const render = (part: object | string) =>
      typeof part === "string" ? this.#fill(part) : JSON.stringify(this.#fillIn(part));
    if (bytes !== undefined) return Buffer.from(this.#fill(bytes), "latin1");
    if (body !== undefined) return Buffer.from(render(body).padEnd(padTo));
    const filled = chunks?.map((chunk) => this.#fill(chunk));
    const rendered = filled?.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    return rendered && Buffer.from(rendered.join(""));
  }
}

const idArrays = new Set(["ids", "missing"]);

const farIds = 10n ** 18n;

function idsFrom(first: bigint): Record<string, string> {
  // Odd, so that no double is equal to it.
  const far = (first > farIds ? first + idsOfRow / 2n : farIds + first) | 1n;
  const ids: Record<string, bigint> = { before: first, far, "far+1": far + 1n };
  for (let number = 1; number <= 9; number++) ids[number] = first + BigInt(number);
  return Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, String(id)]));
}

/** Another token that looks the same. In a JWT, some bits of the last character don't count. */
function changeMiddle(token: string): string {
  const at = Math.floor(token.length / 2);
  return `${token.slice(0, at)}${token[at] === "a" ? "b" : "a"}${token.slice(at + 1)}`;
}

/** A service may close the connection instead of sending a response, if the row says so. */
function expectClosed(error: unknown, { status }: Expected): [] {
  const mayClose = Array.isArray(status) && status.includes(closed);
  if (mayClose && error instanceof NoResponse && error.message.includes("closed")) return [];
  throw error;
}
