/**
 * A small load balancer: hands each connection to the next instance that says it is ready. It reads
 * nothing of what goes through, so every rule of the service holds as if it were not there.
 */
import { connect, createServer, type Socket } from "node:net";

export interface Backend {
  readonly name: string;
  readonly port: number;
}

export interface Balancer {
  readonly port: number;
  /** Takes no connection any more; those that it has go on. */
  drain(): void;
  /** Cuts those that are left. */
  stop(): void;
}

const host = "127.0.0.1";
const checkEveryMs = 250;
const checkTimeoutMs = 1_000;
const nobody =
  "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/** Fails if it cannot listen. Tells of every backend that becomes ready, or is so no more. */
export async function startBalancer(
  wantedPort: number,
  backends: readonly Backend[],
  onChange: (backend: Backend, isReady: boolean) => void,
): Promise<Balancer> {
  const ready = new Set<Backend>();
  const sockets = new Set<Socket>();
  let turn = 0;

  function note(backend: Backend, isReady: boolean): void {
    if (ready.has(backend) === isReady) return;
    if (isReady) ready.add(backend);
    else ready.delete(backend);
    onChange(backend, isReady);
  }

  function watch(socket: Socket): Socket {
    sockets.add(socket);
    return socket.once("close", () => sockets.delete(socket));
  }

  /** Nothing was sent yet where connecting fails, so the next one may be asked. */
  function pass(client: Socket): void {
    const choices = backends.filter((backend) => ready.has(backend));
    const backend = choices[turn++ % choices.length];
    if (backend === undefined) {
      client.end(nobody);
      return;
    }
    const upstream = watch(connect(backend.port, host));
    const retry = () => {
      note(backend, false);
      pass(client);
    };
    upstream.once("error", retry);
    upstream.once("connect", () => {
      upstream.off("error", retry);
      upstream.on("error", () => client.destroy());
      client.once("close", () => upstream.destroy());
      upstream.once("close", () => client.end());
      client.pipe(upstream).pipe(client);
    });
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    watch(client).on("error", () => client.destroy());
    pass(client);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(wantedPort, host, resolve);
  });
  const checks = setInterval(() => {
    for (const backend of backends) {
      isReady(backend).then((answer) => note(backend, answer));
    }
  }, checkEveryMs);

  return {
    port: (server.address() as { port: number }).port,
    drain() {
      clearInterval(checks);
      server.close();
    },
    stop() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function isReady({ port }: Backend): Promise<boolean> {
  try {
    const response = await fetch(`http://${host}:${port}/readyz`, {
      keepalive: false,
      signal: AbortSignal.timeout(checkTimeoutMs),
    });
    return response.ok;
  } catch {
    return false;
  }
}
