/**
 * The real program on one database, restarted after every end. Callers need not know: a call waits
 * for the next process, and a lost response becomes a 503 with an unknown outcome.
 */
import { join } from "node:path";
import type { RawResponse } from "../../../src/check/wire.ts";
import {
  type RunningService,
  spawnProgram,
  startService,
  waitFor,
} from "../../end-to-end/running-service.ts";
import { headerOf, KeptConnection, Unanswered, writeRequest } from "../kept-connection.ts";
import type { Caller } from "../plant-client.ts";

export interface RestartingOptions {
  readonly database: string;
  readonly threads: number;
  readonly isSecure: boolean;
  readonly program?: string | undefined;
  readonly onFault: (text: string) => void;
}

const bulkType = "application/jsonl";
const certificates = join(import.meta.dir, "../../certificates");

export class RestartingService implements Caller {
  readonly isSecure: boolean;
  /** How many requests got a response, and how many did not. */
  answered = 0;
  lost = 0;
  /** How many of these were bulks. */
  lostBulks = 0;
  readonly #options: RestartingOptions;
  readonly #args: readonly string[];
  #next = Promise.withResolvers<RunningService>();
  #process: RunningService | undefined;
  #idle: KeptConnection[] = [];
  #onWrite = () => {};
  /** The highest id so far, and before this process started: a new id must be higher. */
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

  async start(): Promise<void> {
    const { database, program } = this.#options;
    const service = await startService({ database, args: this.#args, program });
    this.#floorId = this.#highestId;
    this.#process = service;
    this.#next.resolve(service);
  }

  /** Starts it and kills it so much later, however far it got. */
  async startAndKill(afterMs: number): Promise<void> {
    const { database, program } = this.#options;
    const args = ["serve", "--port", "0", "--database", database, ...this.#args];
    const child = spawnProgram(args, {}, program);
    await Bun.sleep(afterMs);
    child.kill("SIGKILL");
    await child.exited;
  }

  async kill(): Promise<void> {
    this.#process?.signal("SIGKILL");
    await this.#leave();
  }

  /** Sends SIGTERM and returns the exit code. */
  async stop(): Promise<number | undefined> {
    this.beginStop();
    const exitCode = await this.#process?.exited;
    await this.#leave();
    return exitCode;
  }

  beginStop(): void {
    this.#process?.signal("SIGTERM");
  }

  async #leave(): Promise<void> {
    const old = this.#process;
    this.#next = Promise.withResolvers();
    this.#process = undefined;
    this.#idle = [];
    await old?.[Symbol.asyncDispose]();
  }

  /** Every plant that is created from now on must have a higher id. */
  raiseFloor(id: bigint): void {
    if (id > this.#highestId) this.#highestId = id;
    this.#floorId = this.#highestId;
  }

  /** Resolves when the next write is confirmed. */
  untilWrite(): Promise<void> {
    return new Promise((resolve) => {
      this.#onWrite = resolve;
    });
  }

  async call(line: string, init: RequestInit & { token?: string } = {}): Promise<Response> {
    const headers = (init.headers ?? {}) as Record<string, string>;
    const isBulk = headers["Content-Type"] === bulkType;
    const text = writeRequest(line, {
      token: init.token ?? "",
      headers,
      ...(init.body ? { body: String(init.body) } : {}),
    });
    const connection = await this.#connect();
    const service = this.#process;
    try {
      const response = await connection.ask(text);
      if (connection.isOver || service !== this.#process) connection.close();
      else this.#idle.push(connection);
      this.#check(response);
      return toResponse(response);
    } catch (error) {
      if (!(error instanceof Unanswered) || error.isHung) throw error;
      this.lost++;
      if (isBulk) this.lostBulks++;
      // Only a killed process may leave half a response behind.
      if (error.hasBegun && (await service?.exited) === 0) {
        this.#options.onFault(`cut short: ${line}: ${error.message}`);
      }
      return new Response("No response came, so the outcome is unknown.", { status: 503 });
    }
  }

  /** To the current process, or to the next one. */
  #connect(): Promise<KeptConnection> {
    return waitFor(async () => {
      const idle = this.#idle.pop();
      if (idle) return idle.isOver ? undefined : idle;
      const { port } = await this.#next.promise;
      return KeptConnection.open({ port, isSecure: this.isSecure }).catch(() => undefined);
    });
  }

  #check(response: RawResponse): void {
    const { status, body } = response;
    const { onFault } = this.#options;
    this.answered++;
    // A busy service refuses with 503, and does nothing.
    if (status >= 500 && status !== 503) onFault(`${status}: ${body}`);
    const isBulk = headerOf(response, "content-type") === bulkType;
    if (status === 201 || status === 204 || isBulk) this.#onWrite();
    const id = BigInt(headerOf(response, "location")?.split("/").at(-1) ?? 0);
    if (status !== 201 || id <= 0n) return;
    if (id <= this.#floorId && !headerOf(response, "idempotency-replayed")) {
      onFault(`the id ${id} was assigned after ${this.#floorId}`);
    }
    if (id > this.#highestId) this.#highestId = id;
  }
}

function toResponse({ status, headers, body }: RawResponse): Response {
  const content = status === 204 ? null : new Uint8Array(body);
  return new Response(content, { status, headers: headers.map(([name, value]) => [name, value]) });
}
