/** A client that creates, puts and deletes plants, and notes every response in a ledger. */
import { type Caller, hangMs } from "../testing/kept-connection.ts";
import { type Entry, type Ledger, type NewBulk, type NewPlant, tagOf } from "./ledger.ts";

/** A plant whose id is known. */
export type OwnPlant = Required<NewPlant> & { readonly id: string };

interface Reply extends Pick<Response, "status" | "headers"> {
  readonly text: string;
}

/** Whether the plant was created, put or deleted; if not, whether to try again later. */
export type Outcome = "done" | "unavailable" | "failed";

export class PlantClient {
  readonly #ledger: Ledger;

  constructor(
    private readonly service: Caller,
    private readonly options: { ledger: Ledger; token: string },
  ) {
    this.#ledger = options.ledger;
  }

  /** The key, if there is one, is the plant's name. */
  create({ name, id, isKeyed = false }: NewPlant & { isKeyed?: boolean }): Promise<Outcome> {
    const body = bodyOf(name, id);
    const headers: Record<string, string> = isKeyed ? { "Idempotency-Key": name } : {};
    const sent = { name, id, ...(isKeyed && { keyed: { key: name, id } }) };
    const wasPresent = this.#ledger.find(name)?.wasPresent === true;
    return this.#write("POST /plants", { body, headers }, sent, (reply, before) => {
      const { status, headers, text } = reply;
      if (status === 201) {
        const isReplayed = headers.get("idempotency-replayed") === "true";
        if (wasPresent && !isReplayed) this.#ledger.fault(`created again: ${name}`);
        if (text !== bodyOf(name)) this.#ledger.fault(`another response to ${name}: ${text}`);
        // A plant that an earlier attempt has created may have been deleted since.
        const state = wasPresent ? before.state : "present";
        return { state, id: headers.get("location")?.split("/").at(-1) };
      }
      // The id is taken: by this plant, if an earlier attempt had an unknown outcome.
      const isOwn = status === 409 && id !== undefined && !isKeyed && before.state === "unknown";
      return isOwn ? { state: "present" } : undefined;
    });
  }

  async createMany({ key, plants }: NewBulk): Promise<Outcome> {
    const before = plants.map(({ name }) => this.#ledger.find(name));
    const sent = plants.map(({ name, id }, index) => {
      const { state = "unknown" } = before[index] ?? {};
      return { name, id, state, keyed: { key, id } };
    });
    this.#ledger.note(...sent);
    const reply = await this.#send("POST /plants/bulk", {
      body: `[${plants.map(({ name, id }) => bodyOf(name, id))}]`,
      headers: { "Idempotency-Key": key },
    });
    // Whatever went wrong, some of the plants may be stored.
    if (reply?.status !== 200) return this.#judge(reply, `create ${key}`);
    const results = reply.text.match(/\{[^{}]*\}/g) ?? [];
    if (results.length !== plants.length) this.#ledger.fault(`${key}: ${results.length} results`);
    const created = sent.flatMap(({ name, state }, index): Entry[] => {
      const result = results[index] ?? "";
      const id = /^{"status":201,"id":(-?\d+)[,}]/.exec(result)?.[1];
      const wasPresent = before[index]?.wasPresent;
      if (id === undefined) this.#ledger.fault(`create ${name}: ${result}`);
      else if (wasPresent && !result.endsWith('"replayed":true}')) {
        this.#ledger.fault(`created again: ${name}`);
      }
      // A plant that an earlier attempt has created may have been deleted since.
      return id === undefined ? [] : [{ name, id, state: wasPresent ? state : "present" }];
    });
    this.#ledger.note(...created);
    return "done";
  }

  /**
   * Version 0 creates the plant, others replace it, or change its tag alone where it is known to be
   * there. The proof `histories` has preconditions.
   */
  put({ name, id }: OwnPlant, version: number): Promise<Outcome> {
    const { versions = [], state } = this.#ledger.find(name) ?? {};
    const sent = { name, id, versions: [...new Set([...versions, version])] };
    const isPatch = state === "present" && version % 2 === 1;
    const body = isPatch
      ? JSON.stringify({ tag: tagOf(name, version) })
      : bodyOf(name, undefined, version);
    const request = `${isPatch ? "PATCH" : "PUT"} /plants/${id}`;
    return this.#write(request, { body }, sent, ({ status }, { state }) => {
      const isReplaced = status === 200 && state !== "absent";
      const isCreated = status === 201 && state !== "present";
      return isReplaced || isCreated ? { state: "present", versions: [version] } : undefined;
    });
  }

  delete({ name, id }: OwnPlant): Promise<Outcome> {
    return this.#write(`DELETE /plants/${id}`, {}, { name }, ({ status }, { state }) => {
      const isGone = status === 204 || (status === 404 && state === "unknown");
      return isGone ? { state: "absent" } : undefined;
    });
  }

  /** Undefined if no response came, which is a fault. */
  async #send(request: string, init: RequestInit): Promise<Reply | undefined> {
    try {
      const signal = AbortSignal.timeout(hangMs);
      const { token } = this.options;
      const response = await this.service.call(request, { ...init, token, signal });
      const { status, headers } = response;
      return { status, headers, text: await response.text() };
    } catch (error) {
      this.#ledger.fault(`${request}: ${error}`);
      return undefined;
    }
  }

  /** Notes what is sent, and what the response says: `settle` returns that if it was done. */
  async #write(
    request: string,
    init: RequestInit,
    sent: Omit<Entry, "state">,
    settle: (reply: Reply, before: Entry) => Omit<Entry, "name"> | undefined,
  ): Promise<Outcome> {
    const { name } = sent;
    const before: Entry = this.#ledger.find(name) ?? { name, state: "absent" };
    // While a plant is replaced, or its create repeated, it is in every list.
    const stays = before.state === "present" && !request.startsWith("DELETE");
    this.#ledger.note({ ...sent, state: stays ? "present" : "unknown" });
    const reply = await this.#send(request, init);
    const done = reply && settle(reply, before);
    if (done) {
      this.#ledger.note({ name, ...done });
      return "done";
    }
    // Unless it says that the outcome is unknown, a failure promises that nothing was done.
    const isUnchanged = reply && !reply.text.includes("outcome is unknown");
    if (isUnchanged) this.#ledger.note({ name, state: before.state, versions: before.versions });
    return this.#judge(reply, `${request} of ${name}`);
  }

  #judge(reply: Reply | undefined, what: string): Outcome {
    if (reply === undefined) return "failed";
    if (reply.status === 503 || reply.status === 507) return "unavailable";
    this.#ledger.fault(`${what}: ${reply.status} ${reply.text}`);
    return "failed";
  }
}

/** What a create of this plant sends. */
function bodyOf(name: string, id?: string, version?: number): string {
  const tag = tagOf(name, version);
  return `{"name":"${name}","tag":"${tag}"${id === undefined ? "" : `,"id":${id}`}}`;
}
