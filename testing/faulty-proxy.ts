/**
 * A TCP proxy in front of the service or its database that breaks connections at the moment that a
 * test chooses. Runs under Bun and Node.
 */
import { createServer, connect as openSocket, type Socket } from "node:net";

/**
 * `before`: the request is lost. `after`: it was carried out, the response is lost. `midway`: the
 * response is cut off before its last bytes. `silent`: no response comes.
 */
export type Breakage = "before" | "after" | "midway" | "silent";

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  breakage: Breakage | undefined;
}

const lostBytes = 5;

export class FaultyProxy {
  /** The target's address, by way of this. */
  url = "";
  port = 0;
  /** How many connections were ever made. */
  connections = 0;
  /** If not, new connections are closed at once. */
  isUp = true;
  /** New connections get no response. */
  isSilent = false;
  readonly #planned: Breakage[] = [];
  readonly #links = new Set<Link>();
  readonly #listener = createServer((client) => this.#pass(client));

  constructor(private readonly target: URL) {}

  static async open(target: string, ownPort = 0): Promise<FaultyProxy> {
    const url = new URL(target);
    const proxy = new FaultyProxy(url);
    const listener = proxy.#listener;
    await new Promise<void>((resolve) => listener.listen(ownPort, "127.0.0.1", resolve));
    proxy.port = (listener.address() as { port: number }).port;
    proxy.url = target.replace(url.host, `127.0.0.1:${proxy.port}`);
    return proxy;
  }

  /** The next requests break like this, one after the other; later ones do not. */
  breakNext(...breakages: Breakage[]): void {
    this.#planned.push(...breakages);
  }

  /** The connections of now get no more responses. */
  silence(): void {
    for (const link of this.#links) link.breakage = "silent";
  }

  /** Breaks all connections. */
  cut(): void {
    for (const { client } of this.#links) client.destroy();
  }

  readonly close = (): void => {
    this.#listener.close();
    this.cut();
  };

  #pass(client: Socket): void {
    this.connections++;
    client.on("error", () => {});
    if (!this.isUp) return void client.destroy();
    const server = openSocket(Number(this.target.port), this.target.hostname);
    const link: Link = { client, server, breakage: this.isSilent ? "silent" : undefined };
    this.#links.add(link);
    const cut = () => {
      this.#links.delete(link);
      client.destroy();
      server.destroy();
    };
    server.on("error", cut);
    for (const socket of [client, server]) socket.on("close", cut);
    let isAnswered = true;
    client.on("data", (bytes) => {
      // A request may come in several pieces; the first one after a response starts it.
      if (isAnswered && this.#planned.length > 0) link.breakage = this.#planned.shift();
      isAnswered = false;
      if (link.breakage === "before") cut();
      else server.write(bytes);
    });
    server.on("data", (bytes: Buffer) => {
      isAnswered = true;
      if (link.breakage === undefined) client.write(bytes);
      else if (link.breakage === "midway") client.end(bytes.subarray(0, -lostBytes));
      else if (link.breakage === "after") cut();
    });
  }
}
