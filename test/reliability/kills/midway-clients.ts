/**
 * Clients that are in the midst of something whenever the service is told to stop: several requests
 * in the pipe, a long list that is read slowly, half a body sent. Tells what they were owed and did
 * not get.
 */
import type { RawResponse } from "../../../src/check/wire.ts";
import { bodyOf } from "../gardeners.ts";
import { KeptConnection, Unanswered, writeRequest } from "../kept-connection.ts";
import type { Ledger } from "../ledger.ts";
import type { RestartingService } from "./restarting-service.ts";

const pipesCount = 2;
const pipedLooks = 7;
const readersCount = 2;
/** How long half a request may take to arrive. */
const arrivalMs = 20;
/** How long they stay in the midst of it when the service was told to stop. */
const restMs = 30;

export interface MidwayTokens {
  readonly token: string;
  /** Opens a garden whose list is longer than the buffers on its way. */
  readonly readerToken: string;
  readonly longListBytes: number;
}

export class MidwayClients {
  /** How many of their requests got an answer. */
  answered = 0;
  readonly #service: RestartingService;
  readonly #tokens: MidwayTokens;
  readonly #ledger: Ledger;
  readonly #seed: number;
  readonly #working: Promise<void>[];
  readonly #unsettled = new Set<string>();
  readonly #told = Promise.withResolvers<void>();
  readonly #begun: Promise<void>[] = [];

  constructor(service: RestartingService, tokens: MidwayTokens, ledger: Ledger, seed: number) {
    this.#service = service;
    this.#tokens = tokens;
    this.#ledger = ledger;
    this.#seed = seed;
    const begin = (work: (begun: () => void) => Promise<void>) => {
      const begun = Promise.withResolvers<void>();
      this.#begun.push(begun.promise);
      return work(begun.resolve);
    };
    this.#working = [
      ...Array.from({ length: pipesCount }, (_, pipe) => begin((begun) => this.#pipe(pipe, begun))),
      ...Array.from({ length: readersCount }, () => begin((begun) => this.#readSlowly(begun))),
      begin((begun) => this.#sendHalf(begun)),
    ];
  }

  /** Resolves when each is in the midst of something. */
  async untilBegun(): Promise<void> {
    await Promise.all(this.#begun);
  }

  /** After the service was told to stop: they finish what they were in the midst of. */
  async finish(): Promise<void> {
    setTimeout(this.#told.resolve, restMs);
    await Promise.all(this.#working);
  }

  /** When it runs again, what got no answer is sent again, with the same key. */
  async settle(): Promise<void> {
    for (const name of this.#unsettled) {
      const { token } = this.#tokens;
      const headers = { "Idempotency-Key": name };
      const init = { token, headers, body: bodyOf(name) };
      let response = await this.#service.call("POST /plants", init);
      while (response.status === 503) response = await this.#service.call("POST /plants", init);
      const location = response.headers.get("location");
      this.#note(name, response.status, location, await response.text());
    }
  }

  /** Until nobody takes a connection up any more. */
  async #pipe(pipe: number, begun: () => void): Promise<void> {
    for (let turn = 0; ; turn++) {
      const connection = await this.#connect().catch(() => undefined);
      begun();
      if (!connection) return;
      await this.#fill(connection, `pipe-${this.#seed}-${pipe}-${turn}`);
      connection.close();
    }
  }

  /** Many at once. The create is last, as what follows one costs its answer (docs/interface.md). */
  async #fill(connection: KeptConnection, name: string): Promise<void> {
    const looks = writeRequest("GET /plants?limit=1", this.#tokens).repeat(pipedLooks);
    const answering = connection.send(looks + this.#create(name), pipedLooks + 1);
    const answers = await Promise.all(answering.map((each) => this.#receive(each, "in a pipe")));
    const created = answers.pop();
    if (created) this.#noteAnswer(name, created);
    for (const look of answers) {
      if (look && look.status !== 200 && look.status !== 503)
        this.#fault(`in a pipe: ${look.status}`);
    }
  }

  async #readSlowly(begun: () => void): Promise<void> {
    const connection = await this.#connect();
    const { readerToken, longListBytes } = this.#tokens;
    const [reading] = connection.send(writeRequest("GET /plants", { token: readerToken }));
    const received = this.#receive(reading as NonNullable<typeof reading>, "long list");
    const { resume } = await connection.pauseAtFirst();
    begun();
    await this.#told.promise;
    resume();
    const bytes = (await received)?.body.length;
    if (bytes !== longListBytes) this.#fault(`a long list ended after ${bytes} bytes`);
    connection.close();
  }

  async #sendHalf(begun: () => void): Promise<void> {
    const connection = await this.#connect();
    const name = `half-${this.#seed}`;
    // Whole characters, because each half is written by itself.
    const characters = [...this.#create(name)];
    const [answering] = connection.send(characters.slice(0, -10).join(""));
    const received = this.#receive(answering as NonNullable<typeof answering>, "half a body");
    await Bun.sleep(arrivalMs);
    begun();
    await this.#told.promise;
    connection.sendRest(characters.slice(-10).join(""));
    const answer = await received;
    if (answer) this.#noteAnswer(name, answer);
    connection.close();
  }

  #connect(): Promise<KeptConnection> {
    return KeptConnection.open(this.#service);
  }

  #create(name: string): string {
    this.#ledger.note(name, "open");
    this.#unsettled.add(name);
    const headers = { "Idempotency-Key": name };
    return writeRequest("POST /plants", { token: this.#tokens.token, headers, body: bodyOf(name) });
  }

  /** Absent if the connection was closed without a byte of the answer. */
  async #receive<Answer>(answering: Promise<Answer>, what: string): Promise<Answer | undefined> {
    try {
      const answer = await answering;
      this.answered++;
      return answer;
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      if (error.hasBegun) this.#fault(`cut short: ${what}: ${error.message}`);
      return undefined;
    }
  }

  /** What was put off, or came too late on a busy machine, is sent again in the end. */
  #noteAnswer(name: string, { status, headers, body }: RawResponse): void {
    if (status === 503 || (status === 400 && body.includes("must arrive within"))) return;
    const location = headers.find(([field]) => /^location$/i.test(field))?.[1];
    this.#note(name, status, location, String(body));
  }

  #note(name: string, status: number, location: string | null | undefined, body: string): void {
    this.#unsettled.delete(name);
    this.#ledger.note(name, "there");
    if (status !== 201) this.#fault(`create ${name}: ${status} ${body}`);
    else this.#ledger.noteId(name, location?.split("/").at(-1) ?? "none");
  }

  #fault(text: string): void {
    this.#ledger.fault(text);
  }
}
