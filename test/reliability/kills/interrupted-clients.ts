/**
 * Clients that are in the middle of a request when the service is told to stop: pipelined requests,
 * a long list that is read slowly, half a body sent. Responses that have begun must be complete.
 */
import type { RawResponse } from "../../../src/check/wire.ts";
import {
  type Address,
  headerOf,
  KeptConnection,
  Unanswered,
  writeRequest,
} from "../kept-connection.ts";
import type { Ledger } from "../ledger.ts";
import { bodyOf, type Caller, PlantClient } from "../plant-client.ts";

const pipelinesCount = 2;
const pipelinedLists = 7;
const readersCount = 2;
/** How long half a request may take to arrive. */
const arrivalMs = 20;
/** How long they stay in the middle after the service was told to stop. */
const restMs = 30;

export interface ClientTokens {
  readonly token: string;
  /** For a garden whose list is longer than the buffers of a connection. */
  readonly readerToken: string;
  readonly longListBytes: number;
}

export class InterruptedClients {
  answered = 0;
  readonly #service: Address & Caller;
  readonly #tokens: ClientTokens;
  readonly #ledger: Ledger;
  readonly #seed: number;
  readonly #clients: Promise<void>[];
  readonly #unconfirmed = new Set<string>();
  readonly #stopping = Promise.withResolvers<void>();
  readonly #begun: Promise<void>[] = [];

  constructor(service: Address & Caller, tokens: ClientTokens, ledger: Ledger, seed: number) {
    this.#service = service;
    this.#tokens = tokens;
    this.#ledger = ledger;
    this.#seed = seed;
    const begin = (work: (onBegun: () => void) => Promise<void>) => {
      const begun = Promise.withResolvers<void>();
      this.#begun.push(begun.promise);
      return work(begun.resolve);
    };
    this.#clients = [
      ...Array.from({ length: pipelinesCount }, (_, pipe) =>
        begin((onBegun) => this.#pipeline(pipe, onBegun)),
      ),
      ...Array.from({ length: readersCount }, () => begin((onBegun) => this.#readSlowly(onBegun))),
      begin((onBegun) => this.#sendHalf(onBegun)),
    ];
  }

  /** Resolves when each is in the middle of a request. */
  async untilBegun(): Promise<void> {
    await Promise.all(this.#begun);
  }

  /** Once the service was told to stop, they finish their requests. */
  async finish(): Promise<void> {
    setTimeout(this.#stopping.resolve, restMs);
    await Promise.all(this.#clients);
  }

  /** After the next start, creates without a response are sent again with their keys. */
  async settle(): Promise<void> {
    const client = new PlantClient(this.#service, {
      ledger: this.#ledger,
      token: this.#tokens.token,
    });
    for (const name of this.#unconfirmed) {
      while ((await client.create({ name, isKeyed: true })) === "unavailable") await Bun.sleep(10);
    }
  }

  /** Until connections are no longer accepted. */
  async #pipeline(pipe: number, onBegun: () => void): Promise<void> {
    for (let turn = 0; ; turn++) {
      const connection = await this.#connect().catch(() => undefined);
      onBegun();
      if (!connection) return;
      await this.#fill(connection, `pipe-${this.#seed}-${pipe}-${turn}`);
      connection.close();
    }
  }

  /** The create is last: requests after a create get no response (docs/interface.md). */
  async #fill(connection: KeptConnection, name: string): Promise<void> {
    const lists = writeRequest("GET /plants?limit=1", this.#tokens).repeat(pipelinedLists);
    const sent = connection.send(lists + this.#writeCreate(name), pipelinedLists + 1);
    const responses = await Promise.all(sent.map((each) => this.#receive(each, "pipelined")));
    const created = responses.pop();
    if (created) this.#noteCreated(name, created);
    for (const list of responses) {
      if (list && list.status !== 200 && list.status !== 503) {
        this.#ledger.fault(`pipelined: ${list.status}`);
      }
    }
  }

  async #readSlowly(onBegun: () => void): Promise<void> {
    const connection = await this.#connect();
    const { readerToken, longListBytes } = this.#tokens;
    const list = writeRequest("GET /plants", { token: readerToken });
    const received = this.#receive(connection.ask(list), "long list");
    const { resume } = await connection.pauseAtFirst();
    onBegun();
    await this.#stopping.promise;
    resume();
    const bytes = (await received)?.body.length;
    if (bytes !== longListBytes) this.#ledger.fault(`a long list ended after ${bytes} bytes`);
    connection.close();
  }

  async #sendHalf(onBegun: () => void): Promise<void> {
    const connection = await this.#connect();
    const name = `half-${this.#seed}`;
    const characters = [...this.#writeCreate(name)];
    const received = this.#receive(
      connection.ask(characters.slice(0, -10).join("")),
      "half a body",
    );
    await Bun.sleep(arrivalMs);
    onBegun();
    await this.#stopping.promise;
    connection.sendRest(characters.slice(-10).join(""));
    const response = await received;
    if (response) this.#noteCreated(name, response);
    connection.close();
  }

  #connect(): Promise<KeptConnection> {
    return KeptConnection.open(this.#service);
  }

  #writeCreate(name: string): string {
    const body = bodyOf(name);
    this.#ledger.note({ name, state: "unknown", keyedBody: body });
    this.#unconfirmed.add(name);
    const headers = { "Idempotency-Key": name };
    return writeRequest("POST /plants", { token: this.#tokens.token, headers, body });
  }

  /** Undefined if the connection was closed before the response began. */
  async #receive(receiving: Promise<RawResponse>, what: string): Promise<RawResponse | undefined> {
    try {
      const response = await receiving;
      this.answered++;
      return response;
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      if (error.hasBegun) this.#ledger.fault(`cut short: ${what}: ${error.message}`);
      return undefined;
    }
  }

  /** A create that was refused, or arrived too late on a busy machine, is sent again. */
  #noteCreated(name: string, response: RawResponse): void {
    const { status, body } = response;
    if (status === 503 || (status === 400 && body.includes("must arrive within"))) return;
    this.#unconfirmed.delete(name);
    const id = headerOf(response, "location")?.split("/").at(-1);
    if (status === 201) this.#ledger.note({ name, state: "present", id });
    else this.#ledger.fault(`create ${name}: ${status} ${body}`);
  }
}
