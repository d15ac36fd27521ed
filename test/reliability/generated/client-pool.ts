/** Sends requests as bytes over kept connections, one request at a time on each. */
import { NoResponse, type RawResponse } from "../../../src/check/wire.ts";
import { overloaded } from "../../../src/domain/errors.ts";
import { headerOf, KeptConnection } from "../kept-connection.ts";

export interface Outgoing {
  readonly bytes: Buffer;
  readonly isHead: boolean;
}

const retryMs = 500;
const retriesMax = 60;

export class ClientPool {
  readonly #port: number;
  readonly #connections: (KeptConnection | undefined)[];

  constructor(port: number, connectionsCount: number) {
    this.#port = port;
    this.#connections = Array.from({ length: connectionsCount }, () => undefined);
  }

  /**
   * Sends all of them, and passes each response to `take` as it comes. Requests that an overloaded
   * service refuses are sent again; returns how often.
   */
  async send(
    requests: readonly Outgoing[],
    take: (index: number, outcome: RawResponse | NoResponse) => void,
  ): Promise<number> {
    let next = 0;
    let refused = 0;
    const work = async (lane: number) => {
      while (next < requests.length) {
        const index = next++;
        let outcome = await this.#ask(lane, requests[index] as Outgoing);
        for (let retries = 0; isOverloaded(outcome) && retries < retriesMax; retries++) {
          refused++;
          await Bun.sleep(retryMs);
          outcome = await this.#ask(lane, requests[index] as Outgoing);
        }
        take(index, outcome);
      }
    };
    await Promise.all(this.#connections.map((_, lane) => work(lane)));
    return refused;
  }

  close(): void {
    for (const connection of this.#connections) connection?.close();
  }

  async #ask(lane: number, { bytes, isHead }: Outgoing): Promise<RawResponse | NoResponse> {
    const connection =
      this.#connections[lane] ?? (await KeptConnection.open({ port: this.#port, isSecure: false }));
    const outcome = await connection
      .ask(bytes, isHead)
      .catch(({ message }: Error) => new NoResponse(message));
    const isUsable = !(outcome instanceof NoResponse) && mayReuse(outcome, connection);
    this.#connections[lane] = isUsable ? connection : undefined;
    if (!isUsable) connection.close();
    return outcome;
  }
}

/** Other 503s are failures, which may have changed something. HEAD has no body to tell by. */
function isOverloaded(outcome: RawResponse | NoResponse): boolean {
  if (outcome instanceof NoResponse || outcome.status !== 503) return false;
  if (headerOf(outcome, "retry-after") === undefined) return false;
  return outcome.body.length === 0 || outcome.body.includes(overloaded.message);
}

/** Surplus bytes would be taken for the beginning of the next response. */
function mayReuse(response: RawResponse, connection: KeptConnection): boolean {
  if (connection.isOver || connection.hasSurplus) return false;
  return headerOf(response, "connection") !== "close";
}
