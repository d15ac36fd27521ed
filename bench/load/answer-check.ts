/** Makes one request and checks the answer, so that only right answers are ever timed. */
import type { Action } from "./action.ts";

export interface RecordedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Set by the runtime for every answer anew. */
const runtimeHeaders = new Set(["date", "content-length", "transfer-encoding", "connection"]);

/** Fails, with what was wrong, if the answer is not the right one. */
export async function checkAnswer(host: string, action: Action): Promise<RecordedAnswer> {
  const contentType = action.body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await fetch(`http://${host}${action.path}`, {
    method: action.method,
    headers: { ...action.headers, ...contentType, "Accept-Encoding": "identity" },
    ...(action.body === undefined ? {} : { body: action.body }),
    keepalive: false,
  });
  const body = await response.text();
  const isStatusRight = response.status === action.status;
  const fault = isStatusRight
    ? action.findFault(body)
    : `the status is ${response.status}, not ${action.status}`;
  if (fault !== undefined) {
    throw new Error(`${action.method} ${action.path}: ${fault}: ${body.slice(0, 300)}`);
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of response.headers) {
    if (!runtimeHeaders.has(name)) headers[name] = value;
  }
  return { status: response.status, headers, body };
}

export function anyBody(): undefined {
  return undefined;
}

export function emptyBody(body: string): string | undefined {
  return body === "" ? undefined : "the body is not empty";
}

/** The body must be JSON; what is wrong with its value is for `find` to say. */
export function jsonBody(find: (value: unknown) => string | undefined): Action["findFault"] {
  return (body) => {
    try {
      return find(JSON.parse(body));
    } catch {
      return "the body is not JSON";
    }
  };
}
