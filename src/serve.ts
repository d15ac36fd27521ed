/** The wiring: opens storage, makes the app, listens, and drains when it is told to stop. */
import { Authenticator } from "./auth/authenticator.ts";
import type { Config } from "./config.ts";
import { PlantStoreError } from "./domain/errors.ts";
import { createPlants } from "./domain/plants.ts";
import type { Storage } from "./domain/storage.ts";
import { type App, answerLostError, createApp } from "./http/app.ts";
import type { Log } from "./log.ts";
import { Metrics } from "./metrics.ts";
import { GroupCommit, groupCommitDefaults } from "./storage/group-commit.ts";
import { openStorage } from "./storage/open.ts";
import { version } from "./version.ts";

/** A revocation by another process holds within 5 seconds; this leaves room for a slow poll. */
const tokenRefreshMs = 1_000;
const housekeepingMs = 60_000;
/** Above the deadline of a commit, which the runtime would otherwise cut short. */
const idleTimeoutSeconds = 30;
const drainMs = 10_000;

export interface Service {
  /** Where it answers, without a slash at the end. */
  readonly url: string;
  readonly storage: Storage;
  /** Stops accepting, finishes what is under way, closes the storage. */
  stop(): Promise<void>;
}

/** The parts behind the socket, put together over a storage. */
export interface Assembly {
  readonly app: App;
  readonly authenticator: Authenticator;
  readonly writer: GroupCommit;
}

export function assemble(
  config: Pick<Config, "basePath" | "corsOrigins">,
  storage: Storage,
  log: Log,
): Assembly {
  const metrics = new Metrics(version);
  const writer = new GroupCommit(storage, {
    ...groupCommitDefaults,
    onCommit: (writes, durationMs) => metrics.countCommit(writes, durationMs),
  });
  const authenticator = new Authenticator(storage, Date.now);
  const app = createApp({
    context: {
      plants: createPlants({ reader: storage, writer, nowMs: Date.now }),
      basePath: config.basePath,
      readVersion: () => storage.version(),
      async checkStorage() {
        if (writer.isStuck) throw new PlantStoreError("unavailable", "The storage is stuck.");
        await storage.ping();
      },
      renderMetrics: () => metrics.render(),
      renderOpenApi: () => renderOpenApi(config.basePath),
    },
    authenticator,
    log,
    metrics,
    allowedOrigins: config.corsOrigins,
  });
  return { app, authenticator, writer };
}

export async function serve(config: Config, log: Log): Promise<Service> {
  const storage = await openStorage(config.database, { isServing: true });
  const { app, authenticator, writer } = assemble(config, storage, log);
  await authenticator.refresh();
  const server = await listen(config, app.fetch, storage);
  const stopChores = startChores(storage, authenticator, log);
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;

  return {
    url: `http://${host}:${server.port}${config.basePath}`,
    storage,
    async stop() {
      // One span of time for all of it; what is not done by then is cut short.
      const isLate = new Promise<void>((resolve) => setTimeout(resolve, drainMs).unref());
      await Promise.race([server.stop(), isLate.then(() => server.stop(true))]);
      stopChores();
      await Promise.race([writer.drain(), isLate]);
      await Promise.race([authenticator.noteUses().catch(() => {}), isLate]);
      await storage.close();
    },
  };
}

async function listen(
  config: Config,
  fetch: (request: Request) => Promise<Response>,
  storage: Storage,
) {
  try {
    return Bun.serve({
      hostname: config.host,
      port: config.port,
      fetch,
      error: answerLostError,
      development: false,
      // Said, because without development the runtime would share the port with another process.
      reusePort: false,
      idleTimeout: idleTimeoutSeconds,
      // The app refuses large bodies itself, after the token and with a problem that says so.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    });
  } catch (error) {
    await storage.close();
    const { host, port } = config;
    const reason = explainListening((error as { code?: string }).code ?? String(error));
    throw new PlantStoreError("unavailable", `Cannot listen on ${host}:${port}: ${reason}.`);
  }
}

/** The runtime reports an address that is not this machine's as one that is in use. */
function explainListening(code: string): string {
  if (code === "EADDRINUSE") {
    return "the port is in use (choose another with --port), or the host is not this machine";
  }
  return code === "EACCES" ? "permission is denied; ports below 1024 need more rights" : code;
}

/** Loaded when it is first asked for: most processes never are, and the start is faster. */
async function renderOpenApi(basePath: string): Promise<string> {
  const { createOpenApi } = await import("./http/openapi.ts");
  return JSON.stringify(createOpenApi({ version, basePath }));
}

/** What happens beside requests, each at its own pace. A failure is logged and tried again. */
function startChores(storage: Storage, authenticator: Authenticator, log: Log): () => void {
  const chore = (name: string, everyMs: number, run: () => Promise<void>) => {
    let isRunning = false;
    return setInterval(async () => {
      if (isRunning) return;
      isRunning = true;
      await run().catch((error) => log.event("warn", `${name} failed`, { error }));
      isRunning = false;
    }, everyMs);
  };
  const timers = [
    chore("token refresh", tokenRefreshMs, () => authenticator.refresh()),
    chore("note of token uses", housekeepingMs, () => authenticator.noteUses()),
    chore("forgetting of keys", housekeepingMs, async () => {
      while (await storage.forgetKeys(Date.now()));
    }),
  ];
  return () => timers.forEach(clearInterval);
}
