/** Stands between a storage and the tests' PostgreSQL server, like a load balancer. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { sharedPostgres } from "./postgres-server.ts";

/** What becomes of the next connection when its check is answered. */
type Fate = "passed" | "lost";

const shutdownText = "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
const shutdownMessage = Buffer.from(
  `E\0\0\0${String.fromCharCode(4 + shutdownText.length)}${shutdownText}`,
);

export class Relay {
  next: Fate = "passed";
  /** Without a server, it closes every new connection at once. */
  hasServer = true;
  /** New connections are accepted, and get no response. */
  isSilent = false;
  /** How many connections were ever made. */
  connections = 0;
  port = 0;
  readonly #clients = new Set<Socket>();
  /** These get no more responses. */
  #silenced = new WeakSet<Socket>();

  static async start(): Promise<Relay> {
    const { port: serverPort } = await sharedPostgres();
    const relay = new Relay();
    const listener = createServer((client) => relay.#pass(client, serverPort));
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    listener.unref();
    relay.port = (listener.address() as AddressInfo).port;
    return relay;
  }

  /** The address of a database, by way of this. */
  urlOf({ url }: { readonly url: string }): string {
    return url.replace(/@[^/]+/, `@127.0.0.1:${this.port}`);
  }

  /** Returns once the storage can have noticed; a slow one meets a lost connection instead. */
  async cutAll(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    this.#clients.clear();
    await Bun.sleep(50);
  }

  silenceAll(): void {
    this.#silenced = new WeakSet(this.#clients);
  }

  #pass(client: Socket, serverPort: number): void {
    client.on("error", () => {});
    this.connections++;
    if (!this.hasServer) return void client.destroy();
    this.#clients.add(client);
    if (this.isSilent) return;
    const upstream = connect(serverPort, "127.0.0.1");
    upstream.on("error", () => {});
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    client.on("data", (bytes) => upstream.write(bytes));
    upstream.on("data", (bytes: Buffer) => {
      if (this.#silenced.has(client)) return;
      const isCheck = bytes.includes("transaction_read_only");
      if (this.next === "passed" || !isCheck) return void client.write(bytes);
      this.next = "passed";
      // Together, so that both are read before the first of them is acted upon.
      client.end(Buffer.concat([bytes, shutdownMessage]));
      upstream.destroy();
    });
  }
}
