/** Many clients at once: each sends its next request when it has a response. */

export interface CrowdOrder {
  readonly port: number;
  /** Sent in turn. */
  readonly requests: readonly string[];
  readonly clients: number;
  readonly durationMs: number;
  /** How long a refused client waits. */
  readonly pauseMs: number;
}

const deadlineMs = 1_000;
/** The kernel's queue of connections that nobody has accepted yet is short. */
const arrivalsAtOnce = 50;
const arrivalsApartMs = 30;

/** Returns how many 2xx came in time, and how many responses of each status; 0 is none. */
export async function sendCrowd({ port, requests, clients, durationMs, pauseMs }: CrowdOrder) {
  const statuses: Record<number, number> = {};
  let good = 0;
  const endsAtMs = performance.now() + durationMs;
  async function runClient(): Promise<void> {
    let line: Line | undefined;
    for (let turn = 0; performance.now() < endsAtMs; turn++) {
      const dueAtMs = performance.now() + deadlineMs;
      let status = 0;
      try {
        if (!line || line.isOver) line = new Line(port);
        status = await line.ask(requests[turn % requests.length] as string);
      } catch {
        line = undefined;
      }
      statuses[status] = (statuses[status] ?? 0) + 1;
      if ((status === 200 || status === 201) && performance.now() <= dueAtMs) good++;
      if (status === 503) await Bun.sleep(Math.min(pauseMs, endsAtMs - performance.now()));
    }
    line?.close();
  }
  const running: Promise<void>[] = [];
  while (running.length < clients) {
    running.push(runClient());
    if (running.length % arrivalsAtOnce === 0) await Bun.sleep(arrivalsApartMs);
  }
  await Promise.all(running);
  return { good, statuses };
}

/** A connection that takes little time itself, so that the service is the limit. */
class Line {
  isOver = false;
  #received = "";
  #response = Promise.withResolvers<number>();
  readonly #opened: ReturnType<typeof Bun.connect>;

  constructor(port: number) {
    const end = () => {
      this.isOver = true;
      this.#response.reject(new Error("The connection was closed."));
    };
    const data = (_: unknown, bytes: Buffer) => {
      this.#received += bytes.toString("latin1");
      if (isWhole(this.#received)) this.#response.resolve(Number(this.#received.slice(9, 12)));
    };
    const socket = { data, close: end, error: end };
    this.#opened = Bun.connect({ hostname: "127.0.0.1", port, socket });
  }

  /** Returns the status, once the response is whole. */
  async ask(text: string): Promise<number> {
    this.#received = "";
    this.#response = Promise.withResolvers();
    const socket = await this.#opened;
    socket.write(text);
    return this.#response.promise;
  }

  async close(): Promise<void> {
    // A close that nobody waits for is no failure.
    this.#response.promise.catch(() => {});
    (await this.#opened).end();
  }
}

function isWhole(response: string): boolean {
  const headEnd = response.indexOf("\r\n\r\n");
  const length = /^content-length: (\d+)/im.exec(response)?.[1];
  if (length === undefined) return response.endsWith("\r\n0\r\n\r\n");
  return headEnd > 0 && response.length >= headEnd + 4 + Number(length);
}
