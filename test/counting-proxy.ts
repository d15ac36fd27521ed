/** A proxy in front of PostgreSQL that counts statements and round trips. */
import { connect, createServer, type Socket } from "node:net";

export interface CountingProxy {
  readonly port: number;
  /** Since the last call. What is sent before all replies are back is in the same round trip. */
  takeCounts(): { roundTrips: number; statements: number };
  stop(): Promise<void>;
}

/** For connections without TLS. */
export async function startCountingProxy(port: number): Promise<CountingProxy> {
  let counts = { roundTrips: 0, statements: 0 };
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket.setNoDelay());
      socket.on("error", () => {});
    }
    let unanswered = 0;
    let isStarted = false;
    const readClient = readMessages((kind) => {
      if (kind === "E" || kind === "Q") counts.statements++;
      if ((kind === "S" || kind === "Q") && unanswered++ === 0) counts.roundTrips++;
    });
    // An error is a reply: the server sends it ahead of the end of its reply, and `pg` goes on at
    // once.
    let hasFailed = false;
    const readServer = readMessages((kind) => {
      if (kind !== "E" && kind !== "Z") return;
      if (!hasFailed && unanswered > 0) unanswered--;
      hasFailed = kind === "E";
    });
    client.on("data", (bytes: Buffer) => {
      // The first message has no kind.
      if (isStarted) readClient(bytes);
      isStarted = true;
      upstream.write(bytes);
    });
    upstream.on("data", (bytes: Buffer) => {
      readServer(bytes);
      client.write(bytes);
    });
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    takeCounts() {
      const taken = counts;
      counts = { roundTrips: 0, statements: 0 };
      return taken;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Calls back with the kind of every whole message of a stream. */
function readMessages(onMessage: (kind: string) => void): (bytes: Buffer) => void {
  let held = Buffer.alloc(0);
  return (bytes) => {
    held = Buffer.concat([held, bytes]);
    while (held.length >= 5 && held.length > held.readInt32BE(1)) {
      const kind = String.fromCharCode(held[0] ?? 0);
      held = held.subarray(held.readInt32BE(1) + 1);
      onMessage(kind);
    }
  };
}
