/** Sends requests as bytes over a few connections that stay open, one request at a time on each. */
import { NoResponse, type RawResponse } from "../../../src/check/wire.ts";
import { overloaded } from "../../../src/domain/errors.ts";
import { KeptConnection } from "../kept-connection.ts";

export interface Outgoing {
  readonly bytes: Buffer;
  readonly isHead: boolean;
}

/** A request that is not answered by then hangs. */
const usualHangMs = 10_000;

const putOffMs = 500;
const patienceRounds = 60;

export type Take = (index: number, outcome: RawResponse | NoResponse) => void;

export class ClientPool {
  readonly #port: number;
  readonly #hangMs: number;
  readonly #connections: (KeptConnection | undefined)[];

  constructor(port: number, connectionsCount: number, hangMs = usualHangMs) {
    this.#port = port;
    this.#hangMs = hangMs;
    this.#connections = Array.from({ length: connectionsCount }, () => undefined);
  }

  /**
   * All of them, each at the next connection that is free; `take` gets the answers as they come.
   */
  async send(requests: readonly Outgoing[], take: Take): Promise<void> {
    let next = 0;
    const work = async (lane: number) => {
      while (next < requests.length) {
        const index = next++;
        const connection =
          this.#connections[lane] ??
          (await KeptConnection.open({ port: this.#port, isSecure: false }));
        const outcome = await this.#ask(connection, requests[index] as Outgoing);
        const isUsable = !(outcome instanceof NoResponse) && !asksToClose(outcome, connection);
        this.#connections[lane] = isUsable ? connection : undefined;
        if (!isUsable) connection.close();
        take(index, outcome);
      }
    };
    await Promise.all(this.#connections.map((_, lane) => work(lane)));
  }

  /** The same, and what an overloaded service puts off with 503 is sent again. Tells how often. */
  async sendPatiently(requests: readonly Outgoing[], take: Take): Promise<number> {
    let putOff = 0;
    let waiting = [...requests.keys()];
    for (let round = 0; waiting.length > 0; round++) {
      const again: number[] = [];
      const sent = waiting;
      await this.send(
        sent.map((index) => requests[index] as Outgoing),
        (position, outcome) => {
          const index = sent[position] as number;
          if (isPutOff(outcome) && round < patienceRounds) again.push(index);
          else take(index, outcome);
        },
      );
      putOff += again.length;
      waiting = again;
      if (again.length > 0) await Bun.sleep(putOffMs);
    }
    return putOff;
  }

  close(): void {
    for (const connection of this.#connections) connection?.close();
  }

  #ask(connection: KeptConnection, { bytes, isHead }: Outgoing): Promise<RawResponse | NoResponse> {
    const [answer] = connection.send(bytes, 1, isHead) as [Promise<RawResponse>];
    const { promise, resolve } = Promise.withResolvers<RawResponse | NoResponse>();
    const hung = () => resolve(new NoResponse(`none within ${this.#hangMs} ms`));
    const timer = setTimeout(hung, this.#hangMs);
    answer.then(resolve, ({ message }: Error) => resolve(new NoResponse(message)));
    return promise.finally(() => clearTimeout(timer));
  }
}

/** Other answers of 503 are failures: they may have changed something. A HEAD does not tell. */
function isPutOff(outcome: RawResponse | NoResponse): boolean {
  if (outcome instanceof NoResponse || outcome.status !== 503) return false;
  if (!outcome.headers.some(([name]) => name.toLowerCase() === "retry-after")) return false;
  return outcome.body.length === 0 || outcome.body.includes(overloaded.message);
}

function asksToClose({ headers }: RawResponse, connection: KeptConnection): boolean {
  // What comes behind an answer would be taken for the beginning of the next one.
  if (connection.isOver || connection.hasSurplus) return true;
  return headers.some(([name, value]) => name.toLowerCase() === "connection" && value === "close");
}
