/** The requests of the scenarios, and the check that their responses are right. */

export interface Action {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  /** How many plants a response stands for, where the figure is plants per second. */
  readonly plants?: number;
  readonly isRight: (body: string) => boolean;
}

export interface RecordedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * What a path, a header or a body contains in braces. Every request fills it anew.
 * number: counts up, each once; anywhere: the number of a stored plant, in scattered order;
 * token: that of the number's garden; key: a time-ordered UUID, as our clients send.
 */
export type Marks = Readonly<Record<"number" | "anywhere" | "token" | "key", string>>;
const markPattern = /\{(number|anywhere|token|key)\}/;

/** Nine digits, as all numbers have, so that a request's length is always the same. */
export const firstNumber = 100_000_001;
export const tag = "bench";
export const manyPlants = 100_000;
const bulkPlants = 1_000;

const headers = { Authorization: "Bearer {token}" };
const json = { ...headers, "Content-Type": "application/json" };
const withKey = { ...json, "Idempotency-Key": "{key}" };

const create: Action = {
  method: "POST",
  path: "/plants",
  headers: json,
  body: JSON.stringify({ name: "Plant {number}", tag }),
  status: 201,
  isRight: (body) => isPlant(JSON.parse(body)),
};

/** Plant Store's own requests. The peers accept them as far as they have the operation. */
export const actions = {
  list: list("/plants?limit=20", 20),
  "list-uncached": list("/plants?limit=20&after={anywhere}", 20),
  "list-all": list("/plants", manyPlants),
  create,
  "create-key": { ...create, headers: withKey },
  put: { ...create, method: "PUT", path: "/plants/{anywhere}", status: 200 },
  delete: {
    method: "DELETE",
    path: "/plants/{number}",
    headers,
    status: 204,
    isRight: (body) => body === "",
  },
  bulk: {
    method: "POST",
    path: "/plants/bulk",
    headers: withKey,
    body: JSON.stringify(Array(bulkPlants).fill({ name: "Plant", tag })),
    status: 200,
    plants: bulkPlants,
    isRight: (body) => body.match(/"status":201/g)?.length === bulkPlants,
  },
} satisfies Record<string, Action>;

export type ActionName = keyof typeof actions;

function list(path: string, count: number): Action {
  const isRight = (body: string) => {
    const plants: { name: string; tag: string }[] = JSON.parse(body);
    return plants.length === count && plants.every(isPlant);
  };
  return { method: "GET", path, headers, status: 200, isRight };
}

function isPlant(plant: { readonly name: string; readonly tag: string }): boolean {
  return /^Plant \d{9}$/.test(plant.name) && plant.tag === tag;
}

/** The request as it is sent, split at its marks: texts and marks in turn. */
export function toPieces({ method, path, headers, body }: Action, host: string): string[] {
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined) {
    lines.push(`Content-Length: ${body.replaceAll("{number}", String(firstNumber)).length}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n${body ?? ""}`.split(markPattern);
}

/** The runtime sets these itself. */
const runtimeHeaders = ["date", "content-length", "transfer-encoding", "connection"];

/** Sends one request. Fails if the response is wrong, so that only right ones are measured. */
export async function checkResponse(
  host: string,
  action: Action,
  marks: Marks,
): Promise<RecordedResponse> {
  const everyMark = new RegExp(markPattern, "g");
  const fill = (text: string) => text.replace(everyMark, (_, mark: keyof Marks) => marks[mark]);
  const response = await fetch(`http://${host}${fill(action.path)}`, {
    method: action.method,
    headers: { ...JSON.parse(fill(JSON.stringify(action.headers))), "Accept-Encoding": "identity" },
    ...(action.body === undefined ? {} : { body: fill(action.body) }),
    keepalive: false,
  });
  const { status } = response;
  const body = await response.text();
  if (status !== action.status || !action.isRight(body)) {
    const { method, path } = action;
    throw new Error(`Wrong response to ${method} ${path}: ${status} ${body.slice(0, 300)}`);
  }
  const kept = [...response.headers].filter(([name]) => !runtimeHeaders.includes(name));
  return { status, headers: Object.fromEntries(kept), body };
}
