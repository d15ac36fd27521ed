/**
 * Calls a service that may go away and come back, over kept connections that hide no failure. A
 * lost response becomes a 503 with an unknown outcome, so that clients try again.
 */
import type { RawResponse } from "../../src/check/wire.ts";
import { waitFor } from "../end-to-end/running-service.ts";
import { KeptConnection, Unanswered, writeRequest } from "./kept-connection.ts";
import type { Caller } from "./plant-client.ts";

export interface SteadyOptions {
  /** Where the next request goes. */
  readonly pickPort: () => number | Promise<number>;
  readonly isSecure?: boolean;
  readonly onResponse?: (response: RawResponse) => void;
  /** A response from this port ended in the middle. */
  readonly onCutShort?: (port: number, text: string) => unknown;
}

/** From a proxy that lost the service: nobody knows what happened. */
const unknownStatuses = [502, 504];

export class SteadyCaller implements Caller {
  /** How many requests got a response, and how many did not. */
  answered = 0;
  lost = 0;
  /** How many of these were bulks. */
  lostBulks = 0;
  /** Why requests have to be repeated, and how often. */
  readonly reasons = new Map<string, number>();
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
    const [method = ""] = line.split(" ");
    try {
      const response = await connection.ask(text);
      if (!connection.isOver) this.#idle.get(port)?.push(connection);
      this.answered++;
      this.#options.onResponse?.(response);
      const { status } = response;
      if ([429, 502, 503, 504].includes(status)) this.#note(`${method}: ${status}`);
      return unknownStatuses.includes(status) ? unknownOutcome() : toResponse(response);
    } catch (error) {
      if (!(error instanceof Unanswered) || error.isHung) throw error;
      this.lost++;
      if (line.endsWith("/bulk")) this.lostBulks++;
      this.#note(`${method}: ${error.message}`);
      const text = `cut short: ${line}: ${error.message}`;
      if (error.hasBegun) await this.#options.onCutShort?.(port, text);
      return unknownOutcome();
    }
  };

  listReasons(): string {
    return [...this.reasons].map(([reason, count]) => `${count} × ${reason}`).join(", ");
  }

  /** Until somebody accepts it. */
  #connect(): Promise<{ port: number; connection: KeptConnection }> {
    const { pickPort, isSecure = false } = this.#options;
    return waitFor(async () => {
      const port = await pickPort();
      const idle = this.#idle.get(port) ?? [];
      this.#idle.set(port, idle);
      const kept = idle.pop();
      if (kept) return kept.isOver ? undefined : { port, connection: kept };
      const opened = await KeptConnection.open({ port, isSecure }).catch(() => undefined);
      return opened && { port, connection: opened };
    });
  }

  #note(reason: string): void {
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
  }
}

function unknownOutcome(): Response {
  return new Response("No response came, so the outcome is unknown.", { status: 503 });
}

function toResponse({ status, headers, body }: RawResponse): Response {
  const content = status === 204 ? null : new Uint8Array(body);
  return new Response(content, { status, headers: headers.map(([name, value]) => [name, value]) });
}
