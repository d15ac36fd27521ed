/** The ways in which a service can be broken, to put flaws together from. */
import type { WireAnswer } from "../../src/check/wire.ts";
import { headerOf, type Serve, type WireRequest } from "./broken-service.ts";

/** By the rule that is meant to find them, flaws by what they do. */
export type Flaws = Readonly<Record<string, Readonly<Record<string, Serve>>>>;

type Test = (request: WireRequest) => boolean;

export const isCreate: Test = ({ method, target }) =>
  method === "POST" && /\/plants(?:\?|$)/.test(target);
export const isList: Test = ({ method, target }) =>
  method === "GET" && /\/plants(?:\?|$)/.test(target);
export const isDelete: Test = ({ method, target }) =>
  method === "DELETE" && /\/plants\//.test(target);
export const isOn = (method: string, path: string): Test => {
  return (request) => request.method === method && pathOf(request).endsWith(path);
};

export function pathOf({ target }: WireRequest): string {
  return target.split("?")[0] ?? "";
}

/** Broken for some requests, whole for the others. */
export function when(test: Test, serve: Serve): Serve {
  return (request, forward, tokens) =>
    test(request) ? serve(request, forward, tokens) : forward(request);
}

/** Changes what comes in. */
export function asks(change: (request: WireRequest) => WireRequest): Serve {
  return (request, forward) => forward(change(request));
}

/** Changes what goes out. */
export function answers(change: (answer: WireAnswer, request: WireRequest) => WireAnswer): Serve {
  return async (request, forward) => change(await forward(request), request);
}

export function onStatus(status: number, change: (answer: WireAnswer) => WireAnswer): Serve {
  return answers((answer) => (answer.status === status ? change(answer) : answer));
}

/** Always the same answer. */
export function says(status: number, text = ""): Serve {
  return async () => make(status, text);
}

export function make(status: number, text = ""): WireAnswer {
  const type = status < 400 ? "application/json" : "application/problem+json";
  const headers = [["Content-Type", type]] as const;
  return { status, headers, body: Buffer.from(text), surplus: Buffer.alloc(0) };
}

export function withStatus(status: number) {
  return (answer: WireAnswer): WireAnswer => ({ ...answer, status });
}

/** `undefined` takes a header away. */
export function withHeader<Message extends Pick<WireRequest, "headers">>(
  message: Message,
  name: string,
  value: string | undefined,
): Message {
  const others = message.headers.filter(([other]) => other.toLowerCase() !== name.toLowerCase());
  return { ...message, headers: value === undefined ? others : [...others, [name, value]] };
}

export function without(name: string) {
  return <Message extends Pick<WireRequest, "headers">>(message: Message): Message =>
    withHeader(message, name, undefined);
}

// biome-ignore lint/suspicious/noExplicitAny: a flaw may change a body into anything.
export type Loose = any;

/** Numbers keep their digits. */
export function parse(text: string): Loose {
  return JSON.parse(text, keepNumber as (key: string, value: unknown) => unknown);
}

function keepNumber(_key: string, value: unknown, context: { source: string }): unknown {
  const { rawJSON } = JSON as unknown as { rawJSON(text: string): object };
  return typeof value === "number" ? rawJSON(context.source) : value;
}

/** The digits of a number that `parse` kept. */
export function digitsOf(value: Loose): string {
  return JSON.stringify(value) ?? "";
}

export function withBody<Message extends WireRequest | WireAnswer>(
  message: Message,
  text: string,
): Message {
  const body = Buffer.from(text);
  const changed = { ...message, body };
  if (!("method" in message)) return changed;
  return withHeader(changed as WireRequest, "Content-Length", String(body.length)) as Message;
}

/** Changes the JSON that comes out, if it is some. */
export function rewrites(change: (json: Loose, answer: WireAnswer) => Loose) {
  return (answer: WireAnswer): WireAnswer => {
    if (answer.body.length === 0) return answer;
    return withBody(answer, JSON.stringify(change(parse(answer.body.toString()), answer)));
  };
}

/** Changes the plant that a create brings; what is no JSON stays as it is. */
export function drafts(change: (draft: Loose) => Loose): Serve {
  return when(isCreate, (request, forward) => forward(withDraft(request, change)));
}

export function withDraft(request: WireRequest, change: (draft: Loose) => Loose): WireRequest {
  const draft = draftOf(request);
  return draft === undefined ? request : withBody(request, JSON.stringify(change(draft)));
}

export function draftOf(request: WireRequest): Loose {
  try {
    return parse(request.body.toString());
  } catch {
    return undefined;
  }
}

/** Changes the query's parameters. */
export function queries(change: (query: URLSearchParams) => void): Serve {
  return asks((request) => {
    const query = new URLSearchParams(request.target.split("?")[1] ?? "");
    change(query);
    const text = query.toString();
    return { ...request, target: pathOf(request) + (text === "" ? "" : `?${text}`) };
  });
}

/** Without a valid token the real service does not answer more than 401, so a flaw lends one. */
export function tokenOf(request: WireRequest): string {
  return headerOf(request, "authorization")?.split(" ")[1] ?? "";
}

export function asCaller(request: WireRequest, token: string): WireRequest {
  return withHeader(request, "Authorization", `Bearer ${token}`);
}
