/**
 * The shape of the contract table. A row is a sentence, one or more requests, and what each of
 * them must return:
 *
 *     "a second delete is 404": [
 *       create(plant(1)),
 *       ["DELETE /plants/{1}", 204],
 *       ["DELETE /plants/{1}", 404],
 *     ],
 *
 * In every text `{…}` stands for a value of the run:
 *
 * - `{1}` … `{9}`: ids that no other row uses, ascending; `{before}` comes before them, `{far}` and
 *   `{far+1}` after them, where a double can't hold them
 * - `{name}`: the start of a name; `{key}`: a new idempotency key
 * - `{each}`: the value that the row runs with
 * - `{base}`: the base path; `{host}`; `{token}`, and `{wrong-token}`: it with a character changed
 * - `{assigned}`: the id in the last `Location`; `{next}`: the target of the last `Link`; `{etag}`:
 *   the last `ETag`; `{last}`: the last `lastEvent`
 */
import type { SentHeaders, ServiceResponse } from "./service.ts";

export interface Sent {
  /** Method and target below the base path, such as `GET /plants?limit=1`. */
  readonly request: string;
  /** The write token by default. */
  readonly token?: "second" | "read" | "none";
  readonly headers?: SentHeaders;
  /** An object or an array is sent as JSON, text as it is. */
  readonly body?: object | string;
  /** A body as Latin-1 text, for bytes that are not UTF-8. */
  readonly bytes?: string;
  /** A body in chunks; it ends with an empty one. */
  readonly chunks?: readonly string[];
  /** Pads the body with spaces to this many bytes. */
  readonly padTo?: number;
  /** The response goes on; it's read until this text. */
  readonly until?: string;
  /** Sends it this many times at once. */
  readonly atOnce?: number;
}

/** Returns a reason, if there is one; `all` are the responses of the row so far. */
export type ResponseCheck = (
  response: ServiceResponse,
  all: readonly ServiceResponse[],
) => string | undefined;

/** In place of a status: the connection was closed without a response. */
export const closed = 0;

export interface Expected {
  /**
   * 200 unless given, or 400 with `errors`. A refusal must be a problem with the code of its
   * status. With an array, a proxy or the runtime may also send it, in any form.
   */
  readonly status?: number | readonly number[];
  /** `null`: absent. An array: the header lists these; a set: these and no others. */
  readonly headers?: Readonly<
    Record<string, string | RegExp | null | readonly string[] | ReadonlySet<string>>
  >;
  /** The body as JSON; the order of members counts, and ids have all their digits. */
  readonly json?: unknown;
  /** A part of the problem's detail. */
  readonly detail?: string;
  /** Where the validation errors are: a pointer into the body, a parameter or a header. */
  readonly errors?: readonly string[];
  /** What became of each plant of a bulk: a status, or the result as JSON. */
  readonly results?: readonly (number | object)[];
  /** What must be the same as in the response before: `status`, `body` or a header. */
  readonly same?: readonly string[];
  /** Why the response is wrong, where the others can't say it. */
  readonly check?: ResponseCheck;
  /** Why this service can't show it, if so. */
  readonly skip?: ResponseCheck;
}

export type Step = readonly [sent: string | Sent, expected: number | Expected];

interface Steps {
  readonly steps: readonly Step[];
  /** Runs once with each of these as `{each}`. */
  readonly each?: readonly string[];
  /** Takes 15 seconds, so it runs with `--slow` only. */
  readonly isSlow?: boolean;
  /** Added to the report if no response comes. */
  readonly hint?: string;
}

export interface Row extends Steps {
  readonly topic: string;
  /** The promise, as a sentence. */
  readonly rule: string;
}

export function rowsOf(
  topic: string,
  rows: Readonly<Record<string, Step | readonly Step[] | Steps>>,
): Row[] {
  return Object.entries(rows).map(([rule, row]) => {
    if ("steps" in row) return { topic, rule, ...row };
    return { topic, rule, steps: (Array.isArray(row[0]) ? row : [row]) as Step[] };
  });
}

/** The steps run once for each value. */
export function each(values: readonly string[], ...steps: Step[]): Steps {
  return { each: values, steps };
}

/** The plant with the id `{1}`, `{2}` and so on, as it is created. */
export function plant(number: number, others: object = {}): object {
  return { name: `{name} ${number}`, tag: `tag ${number}`, id: `{${number}}`, ...others };
}

/** Creates a plant with this tag. */
export function tagged(number: number, tag: string): Step {
  return create(plant(number, { tag }));
}

/** Plants as a list shows them. */
export function shown(...numbers: number[]): object[] {
  return numbers.map((number) => ({ name: `{name} ${number}`, tag: `tag ${number}` }));
}

export const withKey = { "Idempotency-Key": "{key}" };
export const jsonType = { "Content-Type": /^application\/json(?:; ?charset=utf-8)?$/i };
export const strongTag = { ETag: /^"[!#-~]*"$/ };
export const tooLarge = { status: [413] };
export const nextLink = /^<[^>]*>; ?rel="?next"?$/;
export const toNext = { headers: { Link: nextLink } };
export const atEnd = { headers: { Link: null } };
/** One code point, two UTF-16 units, four bytes of UTF-8. */
export const leaf = "\u{1f33f}";

export function create(
  body: object | string,
  expected: number | Expected = 201,
  headers: SentHeaders = {},
): Step {
  return [{ request: "POST /plants", body, headers }, expected];
}

/** Sends plants as a bulk, and expects a result for each. */
export function createMany(
  body: readonly object[],
  results: NonNullable<Expected["results"]>,
  headers: SentHeaders = {},
): Step {
  return [
    { request: "POST /plants/bulk", body, headers },
    { results, headers: jsonType },
  ];
}

/** Creates the plants 1 to `count`, the last one first. */
export function plants(count: number): Step[] {
  return Array.from({ length: count }, (_, index) => create(plant(count - index)));
}

/** Lists the plants of the row. */
export function list(query: string, json: unknown, headers: Expected["headers"] = {}): Step {
  return [`GET /plants?after={before}${query}`, { json, headers }];
}

/** Repeats a step: with several threads or instances, another one may respond. */
export const times = (count: number, step: Step) => Array.from({ length: count }, () => step);

/** Of the responses at the same time, one has this status. */
export const isOnce =
  (status: number): ResponseCheck =>
  (_, all) => {
    const statuses = all.map((response) => response.status);
    const count = statuses.filter((each) => each === status).length;
    return count === 1 ? undefined : `one of them must be ${status}, and they are ${statuses}`;
  };

/** A request with a different token than the write token. */
export function as(
  token: "second" | "read" | "none",
  request: string,
  others: Omit<Sent, "request"> = {},
): Sent {
  return { request, token, ...others };
}

/** A request without a token. */
export function anonymous(request: string, others: Omit<Sent, "request"> = {}): Sent {
  return as("none", request, others);
}
