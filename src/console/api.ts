/**
 * The three operations of the HTTP API, as this page uses them. Ids stay text: no digit is lost.
 */

export interface Plant {
  readonly id: string;
  readonly name: string;
  readonly tag: string;
}

export interface Page {
  readonly plants: readonly Plant[];
  /** Where the list goes on; absent at its end. */
  readonly next: string | undefined;
}

/** What a person typed; nothing is trimmed or checked here, because the service does that. */
export interface Draft {
  readonly name: string;
  readonly tag: string;
  readonly id: string;
}

export interface Fault {
  readonly pointer?: string;
  readonly detail: string;
}

/** The service answered, and the answer is no. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly faults: readonly Fault[] = [],
  ) {
    super(detail);
  }
}

/** There was no answer that this page understands: the network, a proxy, or the service is away. */
export class Unreachable extends Error {}

export interface Api {
  /** A page of plants: the first, or the one that an address leads to. */
  list(address?: string): Promise<Page>;
  /** Answers the plant as it is stored. The same key with the same draft is stored once only. */
  create(draft: Draft, key: string): Promise<Plant>;
  delete(id: string): Promise<void>;
}

const pageSize = 500;
/** A rate limit that asks for more patience than this is told to the person. */
const limitedTriesMax = 5;
const limitedSecondsMax = 15;

const problemTypeStart = "urn:plantstore:problem:";

/** With the service whose page this is; all addresses are relative to it. */
export function connect(token: string, signal: AbortSignal): Api {
  /** `done` is the only status that says so: a page to sign in at has one that is good, too. */
  async function call(
    method: string,
    address: string,
    done: number,
    init: RequestInit = {},
  ): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("Authorization", `Bearer ${token}`);
    const url = new URL(address, document.baseURI);
    for (let tries = 1; ; tries++) {
      const response = await send(url, { ...init, method, headers, signal, cache: "no-store" });
      if (response.status === done) return response;
      const seconds = Number(response.headers.get("Retry-After"));
      const isPassing = response.status === 429 && seconds <= limitedSecondsMax;
      if (!isPassing || tries === limitedTriesMax) throw await readRefusal(response);
      await pause(seconds * 1_000, signal);
    }
  }

  async function send(url: URL, init: RequestInit): Promise<Response> {
    try {
      return await fetch(url, init);
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Unreachable("The service did not answer.");
    }
  }

  return {
    async list(address = `plants?limit=${pageSize}&fields=id,name,tag`) {
      const response = await call("GET", address, 200);
      const plants = await readBody(response, parsePlants);
      return { plants, next: readNext(response.headers) };
    },
    async create(draft, key) {
      const response = await call("POST", "plants", 201, {
        headers: { "Content-Type": "application/json", "Idempotency-Key": key },
        body: renderDraft(draft),
      });
      const id = response.headers.get("Location")?.split("/").at(-1);
      if (!id) throw strange(response);
      return { name: draft.name, tag: draft.tag, id };
    },
    async delete(id) {
      await call("DELETE", `plants/${encodeURIComponent(id)}`, 204);
    },
  };
}

/** Fails once the signal is given: who has left must not be waited for, nor met later. */
async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, durationMs);
    signal.addEventListener("abort", end);
  });
  signal.throwIfAborted();
}

/** A body can break off after its head has come, and be somebody else's, as a page to sign in. */
async function readBody<Result>(
  response: Response,
  read: (text: string) => Result,
): Promise<Result> {
  const text = await response.text().catch(() => {
    throw new Unreachable("The answer broke off.");
  });
  try {
    return read(text);
  } catch {
    throw strange(response);
  }
}

/** Proxies refuse with problems, too, which say nothing of the token or the plant. */
async function readRefusal(response: Response): Promise<Refusal | Unreachable> {
  const isProblem = response.headers.get("Content-Type") === "application/problem+json";
  if (!isProblem) return strange(response);
  return readBody(response, (text) => {
    const { type, detail, errors } = JSON.parse(text);
    if (!type.startsWith(problemTypeStart)) return strange(response);
    return new Refusal(response.status, detail, errors);
  });
}

function strange({ status }: Response): Unreachable {
  return new Unreachable(`Something answered ${status}, not the service.`);
}

/**
 * An unescaped quote begins or ends a string, so `"id":` is that field and never part of a name.
 * Fails if these are no plants.
 */
export function parsePlants(text: string): Plant[] {
  const plants: Plant[] = JSON.parse(text.replace(/"id":(-?\d+)/g, '"id":"$1"'));
  const isPlant = ({ id, name, tag }: Plant) =>
    [id, name, tag].every((part) => typeof part === "string");
  if (plants.every(isPlant)) return plants;
  throw new TypeError("These are no plants.");
}

/** An id that is an integer goes out with its own digits; any other text as text, to be refused. */
export function renderDraft({ name, tag, id }: Draft): string {
  const fields = [`"name":${JSON.stringify(name)}`];
  if (tag !== "") fields.push(`"tag":${JSON.stringify(tag)}`);
  if (id !== "") {
    fields.push(`"id":${/^(?:0|-?[1-9]\d*)$/.test(id) ? id : JSON.stringify(id)}`);
  }
  return `{${fields.join(",")}}`;
}

/**
 * Only the query of the link is followed, at this page's own address: so the token goes nowhere
 * else, and a proxy that changes paths does no harm.
 */
export function readNext(headers: Headers): string | undefined {
  const query = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(headers.get("Link") ?? "")?.[1];
  return query === undefined ? undefined : `plants?${query}`;
}

/** Not `randomUUID`, which browsers keep from pages that came without TLS. */
export function makeKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
