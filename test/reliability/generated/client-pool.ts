/** Sends requests as bytes over a few connections that stay open, one request at a time on each. */
import { NoResponse, parseResponse, type RawResponse } from "../../../src/check/wire.ts";
import { overloaded } from "../../../src/domain/errors.ts";

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
  readonly #connections: (Connection | undefined)[];

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
        const connection = this.#connections[lane] ?? (await Connection.open(this.#port));
        const outcome = await connection.ask(requests[index] as Outgoing, this.#hangMs);
        this.#connections[lane] = connection.isUsable ? connection : undefined;
        if (!connection.isUsable) connection.close();
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
}

class Connection {
  isUsable = true;
  #socket: Bun.Socket | undefined;
  #received: Buffer[] = [];
  #unsent: Buffer | undefined;
  #look: (isEnded: boolean) => void = () => {};

  static async open(port: number): Promise<Connection> {
    const connection = new Connection();
    connection.#socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: (_, bytes) => {
          connection.#received.push(Buffer.from(bytes));
          connection.#look(false);
        },
        drain: () => connection.#flush(),
        close: () => connection.#end(),
        error: () => connection.#end(),
      },
    });
    return connection;
  }

  ask({ bytes, isHead }: Outgoing, hangMs: number): Promise<RawResponse | NoResponse> {
    return new Promise((resolve) => {
      const settle = (outcome: RawResponse | NoResponse) => {
        clearTimeout(timer);
        this.#look = () => {};
        this.#received = [];
        if (outcome instanceof NoResponse || asksToClose(outcome)) this.isUsable = false;
        resolve(outcome);
      };
      const timer = setTimeout(() => settle(new NoResponse(`none within ${hangMs} ms`)), hangMs);
      this.#look = (isEnded) => {
        const answer = parseResponse(Buffer.concat(this.#received), { isHead, isEnded });
        if (answer) settle(answer);
      };
      this.#unsent = bytes;
      this.#flush();
    });
  }

  close(): void {
    this.#socket?.terminate();
  }

  #flush(): void {
    if (!this.#unsent || !this.#socket) return;
    const sent = this.#socket.write(this.#unsent);
    this.#unsent =
      sent < this.#unsent.length ? this.#unsent.subarray(Math.max(0, sent)) : undefined;
  }

  #end(): void {
    this.isUsable = false;
    this.#look(true);
  }
}

/** Other answers of 503 are failures: they may have changed something. A HEAD does not tell. */
function isPutOff(outcome: RawResponse | NoResponse): boolean {
  if (outcome instanceof NoResponse || outcome.status !== 503) return false;
  if (!outcome.headers.some(([name]) => name.toLowerCase() === "retry-after")) return false;
  return outcome.body.length === 0 || outcome.body.includes(overloaded.message);
}

function asksToClose({ headers, surplus }: RawResponse): boolean {
  // What comes behind an answer would be taken for the beginning of the next one.
  if (surplus.length > 0) return true;
  return headers.some(([name, value]) => name.toLowerCase() === "connection" && value === "close");
}
