/** Bytes that no well-behaved client sends, each over its own socket, and the expected outcome. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { NoResponse, parseResponse } from "../../../src/check/wire.ts";
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import {
  answered,
  type HostileCase,
  halfClose,
  hostileCases,
  leave,
  pause,
  tokenPlaceholder,
  victimId,
} from "./cases.ts";

setDefaultTimeout(120_000);

const pauseMs = 30;
/** No response comes later than this, unless the service waits for more. */
const patienceMs = 20_000;
/** Long enough for a response that should not come. */
const silenceMs = 300;
/** Sent last on the same connection, to see whether it is open and in step. */
const probeId = "still-in-step";
const probe = `GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${probeId}\r\n\r\n`;

let service: RunningService;

beforeAll(async () => {
  service = await startService();
  await create(`{"name":"Victim","id":${victimId}}`);
});

afterAll(() => service[Symbol.asyncDispose]());

test.each(hostileCases)("%s", async (name, sent, outcome) => {
  const played = await play([name, sent, outcome]);
  const isRefused = outcome.includes("refused");
  expect(isRefused ? played.replace(/[45]\d\d(?= closed)/, "refused") : played).toBe(outcome);
  if (outcome.endsWith("closed")) await letWritesPass();
  const others = await clearGarden();
  // A create without a response may have been done. A refused one must not.
  if (outcome !== "closed" && !outcome.includes("201")) expect(others).toBe(0);
});

function create(body: string): Promise<Response> {
  return service.call("POST /plants", { body, headers: { Connection: "close" } });
}

/** Writes are committed in order, so earlier ones are done after one more. */
async function letWritesPass(): Promise<void> {
  const id = 1_000_000;
  expect((await create(`{"name":"Last","id":${id}}`)).status).toBe(201);
  await service.call(`DELETE /plants/${id}`);
}

/** Checks that the victim exists, deletes all other plants, and returns how many they were. */
async function clearGarden(): Promise<number> {
  const headers = { Connection: "close" };
  const response = await service.call("GET /plants?fields=id", { headers });
  const ids = ((await response.json()) as { id: number }[]).map(({ id }) => id);
  expect([response.status, ids]).toEqual([200, expect.arrayContaining([victimId])]);
  const others = ids.filter((id) => id !== victimId);
  for (const id of others) await service.call(`DELETE /plants/${id}`);
  return others.length;
}

/** Returns the outcome. The expected one says how long to wait. */
async function play([, sent, expected]: HostileCase): Promise<string> {
  const connection = await Connection.open(service.port);
  try {
    let responses = 0;
    for (const step of typeof sent === "string" ? [sent] : sent) {
      if (typeof step === "string") {
        connection.send(step.replaceAll(tokenPlaceholder, service.token));
      } else if (step === answered) await connection.untilResponses(++responses);
      else if (step === pause) await Bun.sleep(pauseMs);
      else if (step === halfClose) connection.socket.end();
      else if (step === leave) connection.socket.destroy();
    }
    if (expected.endsWith("waiting")) {
      await Bun.sleep(silenceMs);
      return connection.outcome("waiting");
    }
    const count = expected.split(" ").length - 1;
    await connection.untilResponses(expected.endsWith("open") ? count : Number.POSITIVE_INFINITY);
    if (connection.isClosed) return connection.outcome("waiting");
    connection.send(probe);
    await connection.until(() => connection.received.includes(probeId));
    return connection.outcome(connection.received.includes(probeId) ? "open" : "waiting");
  } finally {
    connection.socket.destroy();
  }
}

class Connection {
  isClosed = false;
  received = Buffer.alloc(0);

  constructor(readonly socket: Socket) {
    socket.on("data", (bytes: Buffer) => {
      this.received = Buffer.concat([this.received, bytes]);
    });
    for (const event of ["end", "close", "error"]) {
      socket.on(event, () => {
        this.isClosed = true;
      });
    }
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Connection(socket)));
    });
  }

  send(text: string): void {
    this.socket.write(Buffer.from(text, "latin1"));
  }

  /** Waits until it is so, the other side has closed, or it takes too long. */
  async until(isSo: () => boolean): Promise<void> {
    const endsAtMs = performance.now() + patienceMs;
    while (!isSo() && !this.isClosed && performance.now() < endsAtMs) await Bun.sleep(1);
  }

  untilResponses(count: number): Promise<void> {
    return this.until(() => this.#statuses().length >= count);
  }

  /** All statuses, without the probe's, and what happened to the connection. */
  outcome(ending: "open" | "waiting"): string {
    const statuses = this.#statuses();
    if (this.isClosed) return [...statuses, "closed"].join(" ");
    return [...(ending === "open" ? statuses.slice(0, -1) : statuses), ending].join(" ");
  }

  /** Of all complete responses, interim ones included. */
  #statuses(): string[] {
    const found: string[] = [];
    for (let rest = this.received; rest.length > 0; ) {
      const interim = /^HTTP\/1\.1 (1\d\d)[\s\S]*?\r\n\r\n/.exec(rest.toString("latin1"));
      if (interim) {
        found.push(String(interim[1]));
        rest = rest.subarray(interim[0].length);
        continue;
      }
      const response = parseResponse(rest, { isHead: false, isEnded: this.isClosed });
      if (response instanceof NoResponse) return [...found, `(${response.message})`];
      if (response === undefined) break;
      found.push(String(response.status));
      rest = Buffer.from(response.surplus);
    }
    return found;
  }
}
