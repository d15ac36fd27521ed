/** The real program on one database, which is stopped or killed and started again. */
import { type RunningService, spawnProgram, startService } from "../end-to-end/running-service.ts";

export interface RestartingOptions {
  readonly database: string;
  readonly args?: readonly string[];
  /** Any free one, and another after each start, unless it is given. */
  readonly port?: number;
  readonly program?: string | undefined;
}

export class RestartingService {
  /** The exit codes of all processes so far, by port. */
  readonly exits = new Map<number, Promise<number>>();
  readonly #options: RestartingOptions;
  #next = Promise.withResolvers<RunningService>();
  #process: RunningService | undefined;

  constructor(options: RestartingOptions) {
    this.#options = options;
  }

  /** Absent while it is down. */
  get process(): RunningService | undefined {
    return this.#process;
  }

  /** 0 while it is down, unless it was given. */
  get port(): number {
    return this.#options.port ?? this.#process?.port ?? 0;
  }

  /** Of this process, or of the next one. */
  async untilUp(): Promise<number> {
    return (await this.#next.promise).port;
  }

  async start(program = this.#options.program): Promise<void> {
    const { database, args, port } = this.#options;
    const service = await startService({
      ...{ database, program },
      ...(args && { args }),
      ...(port && { port }),
    });
    this.#process = service;
    this.exits.set(service.port, service.exited);
    this.#next.resolve(service);
  }

  /** Starts it and kills it so much later, however far it got. */
  async startAndKill(afterMs: number): Promise<void> {
    const { database, args = [], program } = this.#options;
    const command = ["serve", "--port", "0", "--database", database, ...args];
    const child = spawnProgram(command, {}, program);
    await Bun.sleep(afterMs);
    child.kill("SIGKILL");
    await child.exited;
  }

  async kill(): Promise<void> {
    this.#process?.signal("SIGKILL");
    await this.#leave();
  }

  /** As a supervisor does. Fails if it does not end in good order. */
  async stop(): Promise<void> {
    this.beginStop();
    const exitCode = await this.#process?.exited;
    await this.#leave();
    if (exitCode !== 0) throw new Error(`An instance ended with ${exitCode}.`);
  }

  beginStop(): void {
    this.#process?.signal("SIGTERM");
  }

  async #leave(): Promise<void> {
    const old = this.#process;
    this.#next = Promise.withResolvers();
    this.#process = undefined;
    await old?.[Symbol.asyncDispose]();
  }
}
