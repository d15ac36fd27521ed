/**
 * A service that can be killed at any moment and comes back: the real program, in its own process.
 */
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import type { Door } from "../kept-connection.ts";

const startsMax = 5;

/** From a start to an end. */
export interface Life extends Door {
  isKilled: boolean;
  /** When it was surely over. */
  readonly endedAtMs: Promise<number>;
}

export interface InstanceOptions {
  readonly name: string;
  readonly database: string;
  readonly threads: number;
  readonly program?: string | undefined;
  /** Something of it, such as a statement that it has sent, may go on without it. */
  readonly isOutlived: boolean;
}

export class Instance {
  readonly name: string;
  /** Absent while it is down. */
  life: Life | undefined;
  readonly #options: InstanceOptions;
  #service: RunningService | undefined;

  private constructor(options: InstanceOptions) {
    this.name = options.name;
    this.#options = options;
  }

  static async start(options: InstanceOptions): Promise<Instance> {
    const instance = new Instance(options);
    await instance.#begin();
    return instance;
  }

  /** Kills it as a crash would, and starts it again; whether it was up. */
  async kill(): Promise<boolean> {
    if (!this.life) return false;
    this.life.isKilled = true;
    this.life = undefined;
    await this.stop();
    await this.#begin();
    return true;
  }

  /** At once, as `kill -9` does; its data stay. */
  async stop(): Promise<void> {
    await this.#service?.[Symbol.asyncDispose]();
  }

  /** For a process that is about to end, and waits for nothing. */
  abandon(): void {
    this.#service?.signal("SIGKILL");
  }

  async #begin(): Promise<void> {
    const { database, threads, program, isOutlived } = this.#options;
    const args = ["--threads", String(threads)];
    const start = () => startService({ args, database, program });
    const service = await (isOutlived ? persist(start) : start());
    this.#service = service;
    this.life = {
      port: service.port,
      isSecure: false,
      isKilled: false,
      endedAtMs: service.exited.then(() =>
        isOutlived ? Number.POSITIVE_INFINITY : performance.now(),
      ),
    };
  }
}

/** As a supervisor does: a start on PostgreSQL fails where its connection is cut off. */
async function persist(start: () => Promise<RunningService>): Promise<RunningService> {
  for (let starts = 1; starts < startsMax; starts++) {
    const service = await start().catch(() => undefined);
    if (service) return service;
  }
  return start();
}
