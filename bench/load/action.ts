/** One kind of request that a contender is asked, and what a right answer to it is. */

/** Marks the place in a path, a header or a body that every request fills anew. */
export const slotMark = "{slot}";

export interface Action {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly slot?: Slot;
  readonly status: number;
  /** What is wrong with the body of an answer; absent if nothing is. */
  readonly findFault: (body: string) => string | undefined;
}

export type Slot =
  /** Numbers from `first` on, each once; with `stride` and `wraps`, scattered over the span. */
  | {
      readonly kind: "number";
      readonly first: number;
      readonly span: number;
      readonly stride: number;
      readonly wraps: boolean;
    }
  /** The lines of a file in turn, again and again. */
  | { readonly kind: "line"; readonly path: string };

export type Share = { readonly action: Action; readonly weight: number };

/** The value that an action's slot is filled with when one request alone is made. */
export function fillSlot(action: Action, value: string): Action {
  const fill = (text: string) => text.replaceAll(slotMark, value);
  const headers = Object.fromEntries(
    Object.entries(action.headers).map(([name, text]) => [name, fill(text)]),
  );
  const { body, slot: _slot, ...rest } = action;
  const filled = { ...rest, path: fill(action.path), headers };
  return body === undefined ? filled : { ...filled, body: fill(body) };
}

/** The request as it goes over the wire, with the slot's mark still in it. */
export function renderAction(action: Action, host: string, slotCharacters: number): string {
  const lines = [`${action.method} ${action.path} HTTP/1.1`, `Host: ${host}`];
  for (const [name, value] of Object.entries(action.headers)) lines.push(`${name}: ${value}`);
  const body = action.body ?? "";
  if (action.body !== undefined) {
    lines.push("Content-Type: application/json");
    const growth = body.includes(slotMark) ? slotCharacters - slotMark.length : 0;
    lines.push(`Content-Length: ${Buffer.byteLength(body) + growth}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}
