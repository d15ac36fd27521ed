/**
 * Calls a service that may go away and come back, over kept connections that hide no failure. A
 * lost response becomes a 503 with an unknown outcome, so that clients try again.
 */
import { waitFor } from "../test/end-to-end/running-service.ts";
import { KeptConnection, Unanswered, writeRequest } from "./kept-connection.ts";
import type { Caller } from "./plant-client.ts";

export interface SteadyOptions {
  /** Where the next request goes; 0 while there is nobody. */
  readonly pickPort: () => number;
  readonly isSecure?: boolean;
  /** A response from this port ended in the middle. */
  readonly onCutShort?: (port: number, text: string) => unknown;
}

export class SteadyCaller implements Caller {
  readonly #options: SteadyOptions;
  readonly #idle = new Map<number, KeptConnection[]>();

  constructor(options: SteadyOptions) {
    this.#options = options;
  }

  readonly call: Caller["call"] = async (line, { token = "", headers, body } = {}) => {
    const text = writeRequest(line, {
      token,
      headers: (headers ?? {}) as Record<string, string>,
      ...(body ? { body: String(body) } : {}),
    });
    const { port, connection } = await this.#connect();
    try {
      const { status, headers, body } = await connection.ask(text);
      if (!connection.isOver) this.#idle.get(port)?.push(connection);
      // From a proxy that lost the service: nobody knows what happened.
      if (status === 502 || status === 504) return unknownOutcome();
      const pairs = headers.map(([name, value]): [string, string] => [name, value]);
      return new Response(status === 204 ? null : new Uint8Array(body), { status, headers: pairs });
    } catch (error) {
      if (!(error instanceof Unanswered) || error.isHung) throw error;
      const text = `cut short: ${line}: ${error.message}`;
      if (error.hasBegun) await this.#options.onCutShort?.(port, text);
      return unknownOutcome();
    }
  };

  /** Until somebody accepts it. */
  #connect(): Promise<{ port: number; connection: KeptConnection }> {
    const { pickPort, isSecure = false } = this.#options;
    return waitFor(async () => {
      const port = pickPort();
      if (port === 0) return undefined;
      const idle = this.#idle.get(port) ?? [];
      this.#idle.set(port, idle);
      const kept = idle.pop();
      if (kept) return kept.isOver ? undefined : { port, connection: kept };
      const opened = await KeptConnection.open({ port, isSecure }).catch(() => undefined);
      return opened && { port, connection: opened };
    });
  }
}

function unknownOutcome(): Response {
  return new Response("No response came, so the outcome is unknown.", { status: 503 });
}
