/** The port: whether it is free, and the runtime's server on it. */

import { PlantStoreError } from "../domain/errors.ts";
import type { Pipeline } from "../http/pipeline.ts";
import type { Config } from "../shared/config.ts";
import type { Certificate } from "./tls.ts";

/** How long active clients have to see `Connection: close` before the port closes. */
const closingMs = 100;
/** Above the deadline of a commit, which the runtime would otherwise cut short. */
const idleTimeoutSeconds = 30;
/**
 * Bun checks its timeouts every four seconds, so a timeout of up to four seconds can end at once.
 */
const closeLaterSeconds = 5;

/** Of TLS 1.2, only suites with authenticated encryption; TLS 1.3 has no others. */
const ciphers = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"]
  .flatMap((suite) => [`ECDHE-ECDSA-${suite}`, `ECDHE-RSA-${suite}`])
  .join(":");

interface ListenOptions extends Pick<Config, "host" | "port" | "threads"> {
  /** Absent: plain HTTP. */
  readonly certificate?: Certificate | undefined;
}

export type Server = ReturnType<typeof listen>;

/** Fails with `unavailable`, in one line, if it cannot listen. */
export function listen(options: ListenOptions, pipeline: Pipeline) {
  const { host, port, threads, certificate } = options;
  const closing = Promise.withResolvers<void>();
  let closingAtMs: number | undefined;
  const server = withListenError(options, () =>
    Bun.serve({
      hostname: host,
      port,
      // Routes match the path as it was sent; `request.url` has it normalized.
      routes: Object.fromEntries(
        pipeline.openPaths.map((path) => [
          path,
          (request: Request) => pipeline.fetch(request, true),
        ]),
      ),
      fetch: (request) => pipeline.fetch(request, false),
      development: false,
      // The kernel shares the connections out among the threads that listen.
      reusePort: threads > 1,
      idleTimeout: idleTimeoutSeconds,
      // The app refuses large bodies itself, after the token and with a problem that says so.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      ...(certificate && { tls: { cert: certificate.cert, key: certificate.key, ciphers } }),
    }),
  );
  return {
    port: server.port ?? port,
    pendingRequests: () => server.pendingRequests,
    /** Takes up to four seconds, because Bun checks its timeouts that often. Any server will do. */
    disconnect: (request: Request) => server.timeout(request, 1),
    /** After four to eight seconds, unless the next request arrives on the connection before. */
    closeLater: (request: Request) => server.timeout(request, closeLaterSeconds),
    stop: (isAbrupt?: boolean) => server.stop(isAbrupt),
    /**
     * Asked for each response, even of requests in flight when closing began. Looks at the clock,
     * because no timer fires while requests arrive without end.
     */
    areClosing(): boolean {
      if (closingAtMs === undefined) return false;
      if (performance.now() - closingAtMs > closingMs) closing.resolve();
      return true;
    },
    /** Each connection ends with its next response. Resolves once clients have had time for it. */
    closeAfterResponses(): Promise<void> {
      closingAtMs = performance.now();
      setTimeout(closing.resolve, closingMs);
      return closing.promise;
    },
  };
}

/**
 * Fails, as listening does, if another program has the port. Threads share a port by SO_REUSEPORT,
 * which another process of the same user could join; this probe binds without it.
 */
export function claimPort(config: Pick<Config, "host" | "port">): void {
  const { host: hostname, port } = config;
  withListenError(config, () => Bun.listen({ hostname, port, socket: { data() {} } }).stop(true));
}

function withListenError<Result>(
  { host, port }: Pick<Config, "host" | "port">,
  listen: () => Result,
): Result {
  try {
    return listen();
  } catch (error) {
    const message = describeListenError((error as { code?: string }).code, host, port);
    throw new PlantStoreError("unavailable", message);
  }
}

/** Addresses that every machine has. */
const isLocal = (host: string) => /^(?:localhost|127\..*|0\.0\.0\.0|::1?)$/.test(host);

/**
 * The runtime reports some addresses that are not this machine's as in use, and gives no code for a
 * name that doesn't exist.
 */
function describeListenError(code: string | undefined, host: string, port: number): string {
  const failed = `Cannot listen on ${host}:${port}`;
  if (code === "EACCES")
    return `${failed}: permission is denied; ports below 1024 need more rights.`;
  if (code === undefined || code === "EADDRNOTAVAIL") {
    return `${failed}: the host is not a name or address of this machine.`;
  }
  if (code !== "EADDRINUSE") return `${failed}: ${code}.`;
  const maybe = isLocal(host) ? "" : `, or ${host} isn't an address of this machine`;
  const other = port < 65_535 ? port + 1 : 8080;
  return (
    `Port ${port} is in use${maybe}. Stop the other program, or choose a port: ` +
    `plantstore serve --port ${other}`
  );
}
