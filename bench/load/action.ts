/** One kind of request, and the check that its response is right. */

/**
 * What a mark in a path, a header or a body stands for. Every request fills it anew.
 * number: each once, counting up; anywhere: a plant that is stored, in scattered order;
 * key7: a UUID that starts with the time, as our clients send; key4: a random UUID.
 */
export const marks = ["number", "anywhere", "token", "key7", "key4"] as const;
export type Mark = (typeof marks)[number];

export interface Action {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  /** How many plants one response stands for, where the rate is one of plants. */
  readonly plants?: number;
  /** Returns what is wrong with a body. */
  readonly findFault: (body: string) => string | undefined;
}

export type Share = { readonly action: Action; readonly weight: number };

export interface RecordedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Splits a text at its marks: texts and marks in turn, starting with a text. */
export function splitAtMarks(text: string): string[] {
  return text.split(markPattern);
}

const markPattern = new RegExp(`\\{(${marks.join("|")})\\}`);
const everyMark = new RegExp(markPattern, "g");

export function fillMarks(text: string, values: Readonly<Record<Mark, string>>): string {
  return text.replace(everyMark, (_, mark: Mark) => values[mark]);
}

/** The whole request as it is sent, with its marks still in it. */
export function renderAction(
  action: Action,
  host: string,
  sample: Readonly<Record<Mark, string>>,
): string {
  const { method, path, headers, body } = action;
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  // A mark always has the same length when it is filled.
  const length = Buffer.byteLength(fillMarks(body ?? "", sample));
  if (body !== undefined) lines.push(`Content-Length: ${length}`);
  return `${lines.join("\r\n")}\r\n\r\n${body ?? ""}`;
}

/** The runtime sets these itself. */
const runtimeHeaders = new Set(["date", "content-length", "transfer-encoding", "connection"]);

/** Makes one request and fails if its response is wrong, so that only right ones are timed. */
export async function checkResponse(
  host: string,
  action: Action,
  values: Readonly<Record<Mark, string>>,
): Promise<RecordedResponse> {
  const fill = (text: string) => fillMarks(text, values);
  const headers = Object.entries(action.headers).map(([name, value]) => [name, fill(value)]);
  const response = await fetch(`http://${host}${fill(action.path)}`, {
    method: action.method,
    headers: { ...Object.fromEntries(headers), "Accept-Encoding": "identity" },
    ...(action.body === undefined ? {} : { body: fill(action.body) }),
    keepalive: false,
  });
  const body = await response.text();
  const fault =
    response.status === action.status
      ? action.findFault(body)
      : `the status is ${response.status}, not ${action.status}`;
  if (fault !== undefined) {
    throw new Error(`${action.method} ${action.path}: ${fault}: ${body.slice(0, 300)}`);
  }
  const kept = [...response.headers].filter(([name]) => !runtimeHeaders.has(name));
  return { status: response.status, headers: Object.fromEntries(kept), body };
}
