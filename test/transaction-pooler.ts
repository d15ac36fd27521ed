/**
 * A small stand-in for PgBouncer in transaction mode: every transaction goes to another connection
 * of the server, and settings of a session are refused at the start. `npm test` uses it, because
 * few machines have PgBouncer; `npm run prove pgbouncer` runs the same tests with the real one.
 */
import { createServer, type Socket } from "node:net";
import { Client } from "pg";

export interface TransactionPooler {
  readonly url: string;
  stop(): Promise<void>;
}

const takenParameters = ["user", "database", "application_name", "client_encoding"];
const backendCount = 3;
const encryptionRequest = 80_877_103;

/** The port of a PgBouncer that takes all databases of the shared server. */
export const realPooler = process.env.PLANTSTORE_TEST_PGBOUNCER;

/** In front of a database of the shared server. */
export async function startPooler(url: string): Promise<TransactionPooler> {
  const urlAt = (port: string) => url.replace(/:\d+\//, `:${port}/`);
  if (realPooler) return { url: urlAt(realPooler), stop: async () => {} };
  const backends = await Promise.all(Array.from({ length: backendCount }, () => connect(url)));
  const idle = [...backends];
  const waiting: ((backend: Socket) => void)[] = [];

  /** The one that has rested longest, so that two transactions in a row never share one. */
  function take(): Promise<Socket> {
    const backend = idle.shift();
    if (backend) return Promise.resolve(backend);
    return new Promise((resolve) => {
      waiting.push(resolve);
    });
  }

  function giveBack(backend: Socket): void {
    const next = waiting.shift();
    if (next) next(backend);
    else idle.push(backend);
  }

  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.on("close", () => clients.delete(client));
    client.on("error", () => {});
    greet(client, () => relay(client, take, giveBack));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: urlAt(String((server.address() as { port: number }).port)),
    async stop() {
      for (const socket of [...clients, ...backends]) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A connection that is logged in, as its bare socket. */
async function connect(url: string): Promise<Socket> {
  const client = new Client(url);
  await client.connect();
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  stream.removeAllListeners();
  stream.on("error", () => {});
  return stream;
}

/** Answers the start of a connection in the server's place. */
function greet(client: Socket, done: () => void): void {
  const onData = (bytes: Buffer) => {
    if (bytes.readInt32BE(4) === encryptionRequest) return void client.write("N");
    client.off("data", onData);
    const words = bytes.toString("utf8", 8).split("\0");
    const names = words.filter((word, index) => index % 2 === 0 && word !== "");
    const refused = names.find((name) => !takenParameters.includes(name));
    if (refused !== undefined) {
      const fields = ["SFATAL", "C08P01", `Munsupported startup parameter: ${refused}`];
      client.end(message("E", `${fields.join("\0")}\0\0`));
      return;
    }
    client.write(
      Buffer.concat([
        message("R", "\0\0\0\0"),
        message("S", "server_version\x018\0"),
        message("K", "\0\0\0\x01\0\0\0\x01"),
        message("Z", "I"),
      ]),
    );
    done();
  };
  client.on("data", onData);
}

function relay(
  client: Socket,
  take: () => Promise<Socket>,
  giveBack: (backend: Socket) => void,
): void {
  let attached: Promise<Socket> | undefined;
  let unanswered = 0;
  const countQuestions = readMessages((kind) => {
    if (kind === "Q" || kind === "S") unanswered++;
  });
  client.on("data", async (bytes: Buffer) => {
    // A goodbye is for the pooler; its connection to the server stays.
    if (bytes[0] === "X".charCodeAt(0)) return;
    countQuestions(bytes);
    attached ??= take().then(attach);
    (await attached).write(bytes);
  });

  function attach(backend: Socket): Socket {
    const countAnswers = readMessages((kind, body) => {
      if (kind !== "Z") return;
      unanswered--;
      if (unanswered > 0 || body !== "I") return;
      backend.off("data", onData);
      attached = undefined;
      giveBack(backend);
    });
    const onData = (bytes: Buffer) => {
      client.write(bytes);
      countAnswers(bytes);
    };
    backend.on("data", onData);
    return backend;
  }
}

/** Calls back for every whole message of a stream: its kind, and what is in it. */
export function readMessages(
  onMessage: (kind: string, body: string) => void,
): (bytes: Buffer) => void {
  let held = Buffer.alloc(0);
  return (bytes) => {
    held = Buffer.concat([held, bytes]);
    while (held.length >= 5 && held.length > held.readInt32BE(1)) {
      const end = held.readInt32BE(1) + 1;
      const kind = String.fromCharCode(held[0] ?? 0);
      const body = held.toString("latin1", 5, end);
      held = held.subarray(end);
      onMessage(kind, body);
    }
  };
}

function message(kind: string, body: string): Buffer {
  const bytes = Buffer.alloc(5 + Buffer.byteLength(body));
  bytes.write(kind);
  bytes.writeInt32BE(bytes.length - 1, 1);
  bytes.write(body, 5);
  return bytes;
}
