/** A client that creates, puts, deletes and lists plants, and notes every response in a ledger. */
import type { RunningService } from "../end-to-end/running-service.ts";
import {
  type Entry,
  type KeyedRequest,
  type Ledger,
  type ListedPlant,
  readList,
  tagOf,
} from "./ledger.ts";

/** A request without a response by then hangs. */
export const hangMs = 10_000;

export type Caller = Pick<RunningService, "call">;

export interface NewPlant {
  readonly name: string;
  /** Assigned by the service unless given. */
  readonly id?: string | undefined;
  /** The key is the plant's name. */
  readonly isKeyed?: boolean;
}

/** Plants that are sent in one request, under one key. */
export interface NewBatch {
  readonly key: string;
  readonly plants: readonly Omit<NewPlant, "isKeyed">[];
}

/** A plant whose id is known. */
export interface OwnPlant {
  readonly name: string;
  readonly id: string;
}

export interface BatchOutcome {
  readonly outcome: Outcome;
  /** How many of the plants an earlier attempt had created. */
  readonly replayed: number;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Whether the plant was created, put or deleted; if not, whether to try again later. */
export type Outcome = "done" | "unavailable" | "failed";

export interface PlantClientOptions {
  readonly ledger: Ledger;
  readonly token: string;
  /** The responses of a service that cannot write now. */
  readonly unavailable?: readonly number[];
  /** A request got no response. By default that is a fault. */
  readonly onNoResponse?: (request: string, error: Error) => unknown;
}

export class PlantClient {
  readonly #service: Caller;
  readonly #options: PlantClientOptions;

  constructor(service: Caller, options: PlantClientOptions) {
    this.#service = service;
    this.#options = options;
  }

  async create(plant: NewPlant): Promise<Outcome> {
    const { ledger } = this.#options;
    const { name, id, isKeyed } = plant;
    const body = bodyOf(name, id);
    const { state: before = "absent" } = ledger.find(name) ?? {};
    ledger.note({ name, state: "unknown", id, keyedBody: isKeyed ? body : undefined });
    const headers: Record<string, string> = isKeyed ? { "Idempotency-Key": name } : {};
    const reply = await this.send("POST /plants", { body, headers });
    const location = reply?.headers.get("location")?.split("/").at(-1);
    if (reply?.status === 201 && location) {
      ledger.note({ name, state: "present", id: location });
      return "done";
    }
    // The id is taken: by this plant, if an earlier attempt had an unknown outcome.
    if (reply?.status === 409 && id !== undefined && !isKeyed && before === "unknown") {
      ledger.note({ name, state: "present" });
      return "done";
    }
    if (before === "present" || isUnchanged(reply)) ledger.note({ name, state: before });
    return this.#judge(reply, `create ${name}`);
  }

  async createMany({ key, plants }: NewBatch): Promise<BatchOutcome> {
    const { ledger } = this.#options;
    const lines = plants.map(({ name, id }, line) => ({
      ...{ name, id, keyedBody: bodyOf(name, id), batch: { key, line } },
      // Another attempt can only replay it.
      isConfirmed: ledger.find(name)?.wasPresent === true,
    }));
    const unconfirmed = lines.filter(({ isConfirmed }) => !isConfirmed);
    ledger.noteAll(
      unconfirmed.map(({ isConfirmed: _, ...sent }) => ({ ...sent, state: "unknown" })),
    );
    const reply = await this.send("POST /plants/bulk", {
      body: lines.map(({ keyedBody }) => keyedBody).join("\n"),
      headers: { "Content-Type": "application/jsonl", "Idempotency-Key": key },
    });
    // Whatever went wrong, some of the lines may be stored.
    if (reply?.status !== 200) return { outcome: this.#judge(reply, `create ${key}`), replayed: 0 };
    const results = readResults(reply.text);
    if (results.length !== lines.length) ledger.fault(`${key}: ${results.length} results`);
    const created = lines.flatMap(({ name, isConfirmed }, line): Entry[] => {
      const { id, isReplayed = false, text } = results[line] ?? {};
      if (id === undefined) ledger.fault(`create ${name}: ${text}`);
      else if (isConfirmed && !isReplayed) ledger.fault(`created again: ${name}`);
      // It may have been deleted since.
      const state = isConfirmed ? (ledger.find(name)?.state ?? "unknown") : "present";
      return id === undefined ? [] : [{ name, id, state }];
    });
    ledger.noteAll(created);
    const assigned = created.map(({ id }) => BigInt(id ?? 0)).filter((id) => id > 0n);
    if (assigned.some((id, index) => id <= (assigned[index - 1] ?? 0n))) {
      ledger.fault(`${key}: later lines have lower ids`);
    }
    return { outcome: "done", replayed: results.filter(({ isReplayed }) => isReplayed).length };
  }

  /** Version 0 creates the plant, others replace it. `isGuarded`: only if it is as expected. */
  async put(plant: OwnPlant, version: number, isGuarded = false): Promise<Outcome> {
    const { ledger } = this.#options;
    const { name, id } = plant;
    const { state = "absent", versions = [version] } = ledger.find(name) ?? {};
    const headers = isGuarded ? await this.#guard(plant, version) : {};
    if (typeof headers === "string") return headers;
    ledger.note({
      ...{ name, id, versions: [...new Set([...versions, version])] },
      // While it is replaced, it is never gone.
      state: state === "present" ? "present" : "unknown",
    });
    const body = bodyOf(name, undefined, version);
    const reply = await this.send(`PUT /plants/${id}`, { body, headers });
    const { status } = reply ?? {};
    const isReplaced = status === 200 && state !== "absent";
    const isCreated = status === 201 && state !== "present";
    // An attempt with an unknown outcome was faster.
    const isOvertaken = status === 412 && (state === "unknown" || versions.length > 1);
    if (isReplaced || isCreated || (isOvertaken && version === 0)) {
      ledger.note({ name, state: "present", versions: [version] });
      return "done";
    }
    if (isUnchanged(reply)) ledger.note({ name, state, versions });
    return isOvertaken ? "unavailable" : this.#judge(reply, `put ${name}`);
  }

  /** A precondition that holds, or why there is none. */
  async #guard(plant: OwnPlant, version: number): Promise<Record<string, string> | Outcome> {
    if (version === 0) return { "If-None-Match": "*" };
    const reply = await this.send(`GET /plants/${plant.id}?fields=id,name,tag`);
    if (reply?.status !== 200) return this.#judge(reply, `get ${plant.name}`);
    this.#options.ledger.check(readList(`[${reply.text}]`));
    return { "If-Match": reply.headers.get("etag") ?? "" };
  }

  async delete(plant: OwnPlant, isGuarded = false): Promise<Outcome> {
    const { ledger } = this.#options;
    const { name, id } = plant;
    const { state: before = "absent" } = ledger.find(name) ?? {};
    const headers = isGuarded && before === "present" ? await this.#guard(plant, 1) : {};
    if (typeof headers === "string") return headers;
    ledger.note({ name, state: "unknown" });
    const reply = await this.send(`DELETE /plants/${id}`, { headers });
    if (reply?.status === 204 || (reply?.status === 404 && before === "unknown")) {
      ledger.note({ name, state: "absent" });
      return "done";
    }
    if (isUnchanged(reply)) ledger.note({ name, state: before });
    return this.#judge(reply, `delete ${name}`);
  }

  /** A plant that was created is in every list from then on, whichever instance is asked. */
  async find({ name, id }: OwnPlant): Promise<void> {
    const after = BigInt(id) - 1n;
    const reply = await this.send(`GET /plants?fields=id,name&limit=1&after=${after}`);
    if (reply?.status !== 200) this.#judge(reply, `find ${name}`);
    else if (!reply.text.includes(`"${name}"`)) this.#options.ledger.fault(`not listed: ${name}`);
  }

  /** Undefined if no response came. */
  async send(request: string, init: RequestInit = {}): Promise<Reply | undefined> {
    const { token, ledger, onNoResponse } = this.#options;
    try {
      const signal = AbortSignal.timeout(hangMs);
      const response = await this.#service.call(request, { ...init, token, signal });
      const { status, headers } = response;
      return { status, headers, text: await response.text() };
    } catch (error) {
      if (onNoResponse) await onNoResponse(request, error as Error);
      else ledger.fault(`${request}: ${error}`);
      return undefined;
    }
  }

  #judge(reply: Reply | undefined, what: string): Outcome {
    const { unavailable = [503], ledger } = this.#options;
    if (reply === undefined) return "failed";
    if (unavailable.includes(reply.status)) return "unavailable";
    ledger.fault(`${what}: ${reply.status} ${reply.text}`);
    return "failed";
  }
}

/** What a create of this plant sends. */
export function bodyOf(name: string, id?: string, version?: number): string {
  return `{"name":"${name}","tag":"${tagOf(name, version)}"${id === undefined ? "" : `,"id":${id}`}}`;
}

export interface LineResult {
  readonly text: string;
  /** Absent if the line was refused. */
  readonly id?: string | undefined;
  readonly isReplayed: boolean;
}

/** The response to a batch, a line for each of its lines. */
export function readResults(text: string): LineResult[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => ({
      text: line,
      id: /^{"status":201,"id":(-?\d+)[,}]/.exec(line)?.[1],
      isReplayed: line.endsWith('"replayed":true}'),
    }));
}

/** Every failure promises that nothing was done, except the one that says otherwise. */
function isUnchanged(reply: Reply | undefined): boolean {
  return reply !== undefined && !reply.text.includes("outcome is unknown");
}

/** All plants, with their tags. */
export async function listPlants(service: Caller, token: string): Promise<ListedPlant[]> {
  const response = await service.call("GET /plants?fields=id,name,tag", { token });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`GET /plants: ${response.status} ${text}`);
  return readList(text);
}

/** A new plant gets an id that no plant had before. */
export async function checkNextId(
  service: Caller,
  token: string,
  highestId: bigint,
): Promise<string[]> {
  const response = await service.call("POST /plants", { token, body: '{"name":"next"}' });
  const id = BigInt(response.headers.get("location")?.split("/").at(-1) ?? 0);
  const isNew = response.status === 201 && id > highestId;
  return isNew ? [] : [`a new plant: ${response.status}, with the id ${id} after ${highestId}`];
}

/** A repeated request gets its first response again, if its plant was stored. */
export async function repeat(
  service: Caller,
  token: string,
  { name, body }: KeyedRequest,
  storedId: string | undefined,
): Promise<string[]> {
  const headers = { "Idempotency-Key": name };
  const response = await service.call("POST /plants", { token, body, headers });
  const isReplayed = response.headers.get("idempotency-replayed") === "true";
  const { tag } = JSON.parse(body);
  const isRight =
    response.status === 201 &&
    isReplayed === (storedId !== undefined) &&
    (await response.text()) === JSON.stringify({ name, tag }) &&
    (storedId === undefined || response.headers.get("location") === `/plants/${storedId}`);
  return isRight ? [] : [`another response to ${name}: ${response.status}`];
}
