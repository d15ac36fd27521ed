/**
 * The program on one database, started again whenever it has ended. Who calls it need not know: a
 * call waits for the process that runs next, and an answer that was lost is told as an unknown
 * outcome.
 */
import { join } from "node:path";
import type { RawResponse } from "../../../src/check/wire.ts";
import {
  type RunningService,
  spawnProgram,
  startService,
  waitFor,
} from "../../end-to-end/running-service.ts";
import { hangMs } from "../gardeners.ts";
import { KeptConnection, Unanswered, writeRequest } from "../kept-connection.ts";

export interface RestartingOptions {
  readonly database: string;
  readonly threads: number;
  readonly isSecure: boolean;
  /** Another program than ours, to see that a broken one is found out. */
  readonly program?: string | undefined;
  /** What must not happen, in words. */
  readonly onFault: (text: string) => void;
}

const hangTurns = 50;
const certificates = join(import.meta.dir, "../../certificates");

export class RestartingService implements Pick<RunningService, "call"> {
  readonly isSecure: boolean;
  /** How many requests got no answer, and how many got one. */
  lost = 0;
  answered = 0;
  readonly #options: RestartingOptions;
  readonly #args: readonly string[];
  #current = Promise.withResolvers<RunningService>();
  #process: RunningService | undefined;
  #idle: KeptConnection[] = [];
  #onAnswer = () => {};
  /**
   * The highest id that was seen, and the highest before this process: those it assigns are higher.
   */
  #highestId = 0n;
  #floorId = 0n;

  constructor(options: RestartingOptions) {
    this.#options = options;
    this.isSecure = options.isSecure;
    this.#args = [
      ...["--threads", String(options.threads)],
      ...(options.isSecure ? ["--tls-cert", join(certificates, "server.pem")] : []),
      ...(options.isSecure ? ["--tls-key", join(certificates, "server-key.pem")] : []),
    ];
  }

  get port(): number {
    return this.#process?.port ?? 0;
  }

  /** Starts it, and lets those in who wait. */
  async start(): Promise<void> {
    const { database, program } = this.#options;
    const service = await startService({
      database,
      args: this.#args,
      ...(program === undefined ? {} : { program }),
    });
    this.#floorId = this.#highestId;
    this.#process = service;
    this.#current.resolve(service);
  }

  /** Starts it and kills it so long afterwards, however far it got. */
  async startInVain(lifeMs: number): Promise<void> {
    const { database, program } = this.#options;
    const args = ["serve", "--port", "0", "--database", database, ...this.#args];
    const child = spawnProgram(args, {}, program);
    await Bun.sleep(lifeMs);
    child.kill("SIGKILL");
    await child.exited;
  }

  async kill(): Promise<void> {
    this.#process?.signal("SIGKILL");
    await this.#leave();
  }

  /** Tells it to stop; tells its exit code. */
  async stop(): Promise<number | undefined> {
    this.#process?.signal("SIGTERM");
    const exitCode = await this.#process?.exited;
    await this.#leave();
    return exitCode;
  }

  /** Tells it to stop, and does not wait for it. */
  beginStop(): void {
    this.#process?.signal("SIGTERM");
  }

  async #leave(): Promise<void> {
    const old = this.#process;
    this.#current = Promise.withResolvers();
    this.#process = undefined;
    this.#idle = [];
    await old?.[Symbol.asyncDispose]();
  }

  /** A plant with this id was there before anything that is created from now on. */
  raiseFloor(id: bigint): void {
    if (id > this.#highestId) this.#highestId = id;
    this.#floorId = this.#highestId;
  }

  /** Resolves with the next answer to a write that says it was done. */
  untilAnswer(): Promise<void> {
    return new Promise((resolve) => {
      this.#onAnswer = resolve;
    });
  }

  /** A request hangs only if a process has it: that none runs is not held against the next one. */
  async call(line: string, init: RequestInit & { token?: string } = {}): Promise<Response> {
    const text = writeRequest(line, {
      token: init.token ?? "",
      headers: init.headers as Record<string, string>,
      ...(init.body ? { body: String(init.body) } : {}),
    });
    const connection = await this.#connect();
    let isOver = false;
    const exchange = this.#exchange(connection, text).finally(() => {
      isOver = true;
    });
    const answer = await Promise.race([exchange, waitLong(() => isOver)]);
    if (answer === undefined) throw new Error("it hung");
    return toResponse(answer);
  }

  async #exchange(connection: KeptConnection, text: string): Promise<RawResponse> {
    const service = this.#process;
    try {
      const [answer] = await Promise.all(connection.send(text));
      if (connection.isOver || service !== this.#process) connection.close();
      else this.#idle.push(connection);
      this.#note(answer as RawResponse);
      return answer as RawResponse;
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      this.lost++;
      // Only a process that was killed may leave half an answer behind.
      if (error.hasBegun && (await service?.exited) === 0) {
        this.#options.onFault(`cut short: ${text.split("\r\n", 1)}: ${error.message}`);
      }
      return lostAnswer;
    }
  }

  /** A connection to the process that runs, or to the next one. */
  async #connect(): Promise<KeptConnection> {
    return waitFor(async () => {
      const idle = this.#idle.pop();
      if (idle) return idle.isOver ? undefined : idle;
      const { port } = await this.#current.promise;
      return KeptConnection.open({ port, isSecure: this.isSecure }).catch(() => undefined);
    });
  }

  #note({ status, headers, body }: RawResponse): void {
    this.answered++;
    // On a machine that is short of time it puts requests off, and does nothing for them.
    if (status >= 500 && status !== 503) this.#options.onFault(`${status}: ${body}`);
    if (status === 201 || status === 204) this.#onAnswer();
    const find = (wanted: string) => headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
    const id = BigInt(find("location")?.split("/").at(-1) ?? 0);
    if (status !== 201 || id <= 0n) return;
    if (id <= this.#floorId && !find("idempotency-replayed")) {
      this.#options.onFault(`the id ${id} was assigned, and ${this.#floorId} long before`);
    }
    if (id > this.#highestId) this.#highestId = id;
  }
}

/** In many turns: while this process is busy itself, what has come for it is not looked at. */
async function waitLong(isOver: () => boolean): Promise<undefined> {
  for (let turn = 0; turn < hangTurns && !isOver(); turn++) await Bun.sleep(hangMs / hangTurns);
}

/** As the service would say it, if it could. */
const lostAnswer: RawResponse = {
  status: 503,
  headers: [],
  body: Buffer.from("No answer came, so the outcome is unknown."),
  surplus: Buffer.alloc(0),
};

function toResponse({ status, headers, body }: RawResponse): Response {
  const content = status === 204 ? null : new Uint8Array(body);
  return new Response(content, { status, headers: headers.map(([name, value]) => [name, value]) });
}
