/** Plays hostile cases, each over its own socket, and reports the outcome. */
import { connect, type Socket } from "node:net";
import { NoResponse, parseResponse } from "../../../src/check/wire.ts";
import {
  answered,
  type HostileCase,
  halfClose,
  leave,
  pause,
  type Step,
  tokenPlaceholder,
} from "./cases.ts";

export interface Target {
  readonly port: number;
  readonly token: string;
}

const pauseMs = 30;
const pollMs = 1;
/** No response comes later than this, unless the service waits for more. */
const patienceMs = 20_000;
/** Long enough for a response that should not come. */
const silenceMs = 300;

/** Sent last on the same connection, to see whether it is open and in step. */
const probeId = "still-in-step";
const probe = `GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${probeId}\r\n\r\n`;

/** Returns the outcome. The expected one says how long to wait. */
export async function play(
  { port, token }: Target,
  [, sent, expected]: HostileCase,
): Promise<string> {
  const steps = typeof sent === "string" ? [sent] : sent;
  const responsesCount = expected.split(" ").length - 1;
  const connection = await Connection.open(port, String(steps[0]).startsWith("HEAD "));
  try {
    for (const [at, step] of steps.entries()) {
      const responsesSoFar = steps.slice(0, at + 1).filter((each) => each === answered).length;
      if (step === answered) await connection.untilResponses(responsesSoFar);
      else await connection.take(step, token);
    }
    if (expected.endsWith("waiting")) {
      await Bun.sleep(silenceMs);
      return connection.outcome("waiting");
    }
    await connection.untilResponses(expected.endsWith("open") ? responsesCount : Infinity);
    if (connection.isClosed) return connection.outcome();
    connection.send(probe);
    await connection.until(() => connection.received.includes(probeId));
    return connection.outcome(connection.received.includes(probeId) ? "open" : "waiting");
  } finally {
    connection.close();
  }
}

class Connection {
  isClosed = false;
  readonly #socket: Socket;
  readonly #isHead: boolean;
  #bytes = Buffer.alloc(0);

  private constructor(socket: Socket, isHead: boolean) {
    this.#socket = socket;
    this.#isHead = isHead;
    socket.on("data", (bytes: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
    });
    const closed = () => {
      this.isClosed = true;
    };
    socket.on("end", closed);
    socket.on("close", closed);
    socket.on("error", closed);
  }

  static open(port: number, isHead: boolean): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Connection(socket, isHead)));
    });
  }

  async take(step: Step, token: string): Promise<void> {
    if (typeof step === "string") this.send(step.replaceAll(tokenPlaceholder, token));
    else if (step === pause) await Bun.sleep(pauseMs);
    else if (step === halfClose) this.#socket.end();
    else if (step === leave) this.#socket.destroy();
  }

  send(text: string): void {
    this.#socket.write(Buffer.from(text, "latin1"));
  }

  get received(): string {
    return this.#bytes.toString("latin1");
  }

  /** Waits until it is so, the other side has closed, or it takes too long. */
  async until(isSo: () => boolean): Promise<void> {
    const endsAtMs = performance.now() + patienceMs;
    while (!isSo() && !this.isClosed && performance.now() < endsAtMs) await Bun.sleep(pollMs);
  }

  untilResponses(count: number): Promise<void> {
    return this.until(() => this.#statuses().length >= count);
  }

  /** All statuses, without the probe's, and what happened to the connection. */
  outcome(ending: "open" | "waiting" = "waiting"): string {
    const statuses = this.#statuses();
    if (this.isClosed) return [...statuses, "closed"].join(" ");
    return [...(ending === "open" ? statuses.slice(0, -1) : statuses), ending].join(" ");
  }

  /** Of all complete responses, interim ones included. */
  #statuses(): string[] {
    const found: string[] = [];
    for (let rest = this.#bytes; rest.length > 0; ) {
      const interim = /^HTTP\/1\.1 (1\d\d)[\s\S]*?\r\n\r\n/.exec(rest.toString("latin1"));
      if (interim) {
        found.push(String(interim[1]));
        rest = rest.subarray(interim[0].length);
        continue;
      }
      const response = parseResponse(rest, { isHead: this.#isHead, isEnded: this.isClosed });
      if (response instanceof NoResponse) return [...found, `(${response.message})`];
      if (response === undefined) break;
      found.push(String(response.status));
      rest = Buffer.from(response.surplus);
    }
    return found;
  }

  close(): void {
    this.#socket.destroy();
  }
}
