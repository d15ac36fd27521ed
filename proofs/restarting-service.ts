/** The real program on one database, which is stopped or killed and started again. */
import {
  type RunningService,
  spawnProgram,
  startService,
} from "../test/end-to-end/running-service.ts";

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
  /** Absent while it is down. */
  process: RunningService | undefined;
  readonly #options: RestartingOptions;

  constructor(options: RestartingOptions) {
    this.#options = options;
  }

  /** 0 while it is down, unless it was given. */
  get port(): number {
    return this.#options.port ?? this.process?.port ?? 0;
  }

  async start(program = this.#options.program): Promise<void> {
    this.process = await startService({ ...this.#options, program });
    this.exits.set(this.process.port, this.process.exited);
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
    const old = this.process;
    this.process = undefined;
    await old?.[Symbol.asyncDispose]();
  }

  /** As a supervisor does. Fails if its exit code isn't 0. */
  async stop(): Promise<void> {
    this.process?.signal("SIGTERM");
    const exitCode = await this.process?.exited;
    await this.kill();
    if (exitCode !== 0) throw new Error(`An instance ended with ${exitCode}.`);
  }
}
