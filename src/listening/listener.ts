/** One thread's share of the service: listens on the port, answers over its own storage, and drains. */
import type { Config } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { Storage } from "../domain/storage.ts";
import { answerLostError } from "../http/app.ts";
import type { Log } from "../log.ts";
import { assemble, type Counting } from "./assembly.ts";
import { startChore } from "./chore.ts";

/** A revocation by another process holds within 5 seconds; this leaves room for a slow poll. */
const tokenRefreshMs = 1_000;
const noteUsesMs = 60_000;
/** Above the deadline of a commit, which the runtime would otherwise cut short. */
const idleTimeoutSeconds = 30;
export const drainMs = 10_000;

export type ListenerConfig = Pick<
  Config,
  "host" | "port" | "database" | "limits" | "basePath" | "corsOrigins" | "threads"
>;

export interface Listener {
  readonly port: number;
  /** Stops accepting and finishes what is under way; what takes too long is cut short. */
  drain(): Promise<void>;
}

/** Fails with `unavailable`, in one line, if it cannot listen. */
export async function openListener(
  config: ListenerConfig,
  storage: Storage,
  log: Log,
  counting: Counting,
): Promise<Listener> {
  const { app, authenticator, writer } = assemble(config, storage, log, counting);
  await authenticator.refresh();
  const server = listen(config, app.fetch);
  const chores = [
    startChore("token refresh", tokenRefreshMs, log, () => authenticator.refresh()),
    startChore("note of token uses", noteUsesMs, log, () => authenticator.noteUses()),
  ];

  return {
    port: server.port ?? config.port,
    async drain() {
      // One span of time for all of it.
      const isLate = new Promise<void>((resolve) => setTimeout(resolve, drainMs).unref());
      await Promise.race([server.stop(), isLate.then(() => server.stop(true))]);
      for (const stopChore of chores) stopChore();
      await Promise.race([writer.drain(), isLate]);
      await Promise.race([authenticator.noteUses().catch(() => {}), isLate]);
    },
  };
}

function listen(config: ListenerConfig, fetch: (request: Request) => Promise<Response>) {
  const { host, port, threads } = config;
  return orExplain(config, () =>
    Bun.serve({
      hostname: host,
      port,
      fetch,
      error: answerLostError,
      development: false,
      // The kernel shares the connections out among the threads that listen.
      reusePort: threads > 1,
      idleTimeout: idleTimeoutSeconds,
      // The app refuses large bodies itself, after the token and with a problem that says so.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    }),
  );
}

/**
 * Fails, as listening does, if another program has the port. A port that threads share would also be
 * shared with another process, and the two would take turns in answering.
 */
export function checkPortIsFree(config: ListenerConfig): void {
  const { host, port } = config;
  orExplain(config, () => Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true));
}

function orExplain<Result>(config: ListenerConfig, listen: () => Result): Result {
  try {
    return listen();
  } catch (error) {
    const reason = explain((error as { code?: string }).code ?? String(error));
    const { host, port } = config;
    throw new PlantStoreError("unavailable", `Cannot listen on ${host}:${port}: ${reason}.`);
  }
}

/** The runtime reports an address that is not this machine's as one that is in use. */
function explain(code: string): string {
  if (code === "EADDRINUSE") {
    return "the port is in use (choose another with --port), or the host is not this machine";
  }
  return code === "EACCES" ? "permission is denied; ports below 1024 need more rights" : code;
}
