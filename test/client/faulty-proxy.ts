/**
 * A TCP proxy that breaks connections at the moment that a test chooses. Runs under Bun and Node.
 */
import { createServer, connect as openSocket, type Socket } from "node:net";

/**
 * `before`: the request is lost. `after`: the service carried it out, the response is lost.
 * `midway`: the response is cut off before its last bytes. `silent`: no response comes.
 */
export type Breakage = "before" | "after" | "midway" | "silent";

export interface FaultyProxy {
  readonly url: string;
  /** The next requests break like this, one after the other; later ones do not. */
  breakNext(...breakages: Breakage[]): void;
  /** From now on, the head of a stream comes, and nothing after it. */
  bufferStreams(): void;
  /** Breaks all connections. */
  cut(): void;
  close(): void;
}

const lostBytes = 5;

export async function openFaultyProxy(target: string, ownPort = 0): Promise<FaultyProxy> {
  const { hostname, port } = new URL(target);
  const planned: Breakage[] = [];
  const sockets = new Set<Socket>();
  let isBuffering = false;

  const server = createServer((client) => {
    const service = openSocket(Number(port), hostname);
    let breakage: Breakage | undefined;
    let isAnswered = true;
    const cut = () => {
      client.destroy();
      service.destroy();
    };
    for (const socket of [client, service]) {
      sockets.add(socket);
      socket.on("error", cut);
      socket.on("close", () => {
        sockets.delete(socket);
        cut();
      });
    }
    client.on("data", (bytes) => {
      // A request may come in several pieces; the first one after a response starts it.
      if (isAnswered) breakage = planned.shift();
      isAnswered = false;
      if (breakage === "before") cut();
      else service.write(bytes);
    });
    service.on("data", (bytes: Buffer) => {
      isAnswered = true;
      if (isBuffering && bytes.includes("text/event-stream")) {
        client.write(bytes.subarray(0, bytes.indexOf("\r\n\r\n") + 4));
        breakage = "silent";
      }
      if (breakage === undefined) client.write(bytes);
      else if (breakage === "midway") client.end(bytes.subarray(0, -lostBytes));
      else if (breakage === "after") cut();
    });
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(ownPort, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    breakNext: (...breakages) => planned.push(...breakages),
    bufferStreams() {
      isBuffering = true;
    },
    cut,
    close() {
      server.close();
      cut();
    },
  };
}
