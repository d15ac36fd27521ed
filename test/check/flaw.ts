/** The ways in which a service can be broken, to put flaws together from. */
import type { RawResponse } from "../../src/check/wire.ts";
import type { RawRequest, Serve } from "./broken-service.ts";

type Test = (request: RawRequest) => boolean;

export const isCreate: Test = ({ method, target }) =>
  method === "POST" && /\/plants(?:\?|$)/.test(target);
export const isList: Test = ({ method, target }) =>
  method === "GET" && /\/plants(?:\?|$)/.test(target);
export const isDelete: Test = ({ method, target }) =>
  method === "DELETE" && /\/plants\//.test(target);
export const isOn = (method: string, path: string): Test => {
  return (request) => request.method === method && pathOf(request).endsWith(path);
};

export function pathOf({ target }: RawRequest): string {
  return target.split("?")[0] ?? "";
}

/** Broken for some requests, whole for the others. */
export function when(test: Test, serve: Serve): Serve {
  return (request, forward, tokens) =>
    test(request) ? serve(request, forward, tokens) : forward(request);
}

/** Changes what comes in. */
export function asks(change: (request: RawRequest) => RawRequest): Serve {
  return (request, forward) => forward(change(request));
}

/** Changes what goes out. */
export function answers(change: (answer: RawResponse, request: RawRequest) => RawResponse): Serve {
  return async (request, forward) => change(await forward(request), request);
}

export function onStatus(status: number, change: (answer: RawResponse) => RawResponse): Serve {
  return answers((answer) => (answer.status === status ? change(answer) : answer));
}

/** Always the same answer. */
export function says(status: number, text = ""): Serve {
  return async () => make(status, text);
}

export function make(status: number, text = ""): RawResponse {
  const type = status < 400 ? "application/json" : "application/problem+json";
  const headers = [["Content-Type", type]] as const;
  return { status, headers, body: Buffer.from(text), surplus: Buffer.alloc(0) };
}

export function withStatus(status: number) {
  return (answer: RawResponse): RawResponse => ({ ...answer, status });
}

/** `undefined` takes a header away. */
export function withHeader<Message extends Pick<RawRequest, "headers">>(
  message: Message,
  name: string,
  value: string | undefined,
): Message {
  const others = message.headers.filter(([other]) => other.toLowerCase() !== name.toLowerCase());
  return { ...message, headers: value === undefined ? others : [...others, [name, value]] };
}

export function without(name: string) {
  return <Message extends Pick<RawRequest, "headers">>(message: Message): Message =>
    withHeader(message, name, undefined);
}

// biome-ignore lint/suspicious/noExplicitAny: a flaw may change a body into anything.
export type Loose = any;

/** Numbers keep their digits. */
function parse(text: string): Loose {
  return JSON.parse(text, keepNumber as (key: string, value: unknown) => unknown);
}

function keepNumber(_key: string, value: unknown, context: { source: string }): unknown {
  const { rawJSON } = JSON as unknown as { rawJSON(text: string): object };
  return typeof value === "number" ? rawJSON(context.source) : value;
}

export function withBody<Message extends RawRequest | RawResponse>(
  message: Message,
  text: string,
): Message {
  const body = Buffer.from(text);
  const changed = { ...message, body };
  if (!("method" in message)) return changed;
  return withHeader(changed as RawRequest, "Content-Length", String(body.length)) as Message;
}

/** Changes the JSON that comes out, if it is some. */
export function rewrites(change: (json: Loose, answer: RawResponse) => Loose) {
  return (answer: RawResponse): RawResponse => {
    if (answer.body.length === 0) return answer;
    return withBody(answer, JSON.stringify(change(parse(answer.body.toString()), answer)));
  };
}

/** Changes the plant that a create brings; what is no JSON stays as it is. */
export function drafts(change: (draft: Loose) => Loose): Serve {
  return when(isCreate, (request, forward) => {
    try {
      const draft = parse(request.body.toString());
      return forward(withBody(request, JSON.stringify(change(draft))));
    } catch {
      return forward(request);
    }
  });
}
