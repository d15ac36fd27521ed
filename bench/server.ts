/** A contender in a measurement: filled, started, checked, driven by wrk, frozen and stopped. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pickPorts } from "../testing/processes.ts";
import type { Contender, Data, Size } from "./contenders.ts";
import {
  readCpuSeconds,
  readOthersCpuSeconds,
  run,
  startProcess,
  waitUntilReady,
  workspace,
} from "./processes.ts";
import {
  type Action,
  checkResponse,
  firstNumber,
  type RecordedResponse,
  toPieces,
} from "./requests.ts";

/** What one round gave. */
export interface Round {
  readonly responsesPerSecond: number;
  readonly p99Ms: number;
  /** Responses with another status, lost connections and timeouts. */
  readonly failures: number;
  /** The contender's, without its database server. */
  readonly cpuUsPerResponse: number;
  /** Of one core, by processes that have no part in this. */
  readonly othersCpuShare: number;
}

/**
 * One more than a multiple of the numbers of gardens, so that a plant's number keeps its token; and
 * without a divisor in common with the numbers of plants, so that all of them have their turn.
 */
const stride = 7_360_001;
/** A service that wakes up catches up on its timers. That isn't measured. */
const settleMs = 150;
/** A service is at rest once it responds quickly, within no transaction, so often in a row. */
const calmResponses = 3;
const calmMs = 100;
const calmDeadlineMs = 60_000;

export class Server {
  readonly contender: Contender;
  readonly data: Data;
  readonly #directory: string;
  readonly #size: Size;
  #instances: { readonly subprocess: Bun.Subprocess; readonly port: number }[] = [];
  /** The place in the sequence of requests: earlier numbers were already sent. */
  #place = 0;

  private constructor(contender: Contender, size: Size, directory: string, data: Data) {
    this.contender = contender;
    this.data = data;
    this.#directory = directory;
    this.#size = size;
  }

  /** Stores the plants. */
  static async prepare(contender: Contender, size: Size): Promise<Server> {
    const directory = mkdtempSync(join(workspace, `${contender.name}-`));
    return new Server(contender, size, directory, await contender.prepare(directory, size));
  }

  async start(): Promise<void> {
    const { name, instances, toCommand } = this.contender;
    const errorPath = join(this.#directory, "standard-error.log");
    for (let index = 0; index < instances; index++) {
      const [port = 0] = pickPorts(1);
      const subprocess = startProcess(toCommand(this.data.database, port), errorPath);
      this.#instances.push({ subprocess, port });
      await waitUntilReady(subprocess, port).catch(async (error: Error) => {
        const said = await Bun.file(errorPath).text();
        throw new Error(`${name}: ${error.message} ${said.slice(0, 1000)}`);
      });
    }
  }

  /** Of the first instance. */
  get pid(): number {
    return this.#instances[0]?.subprocess.pid ?? 0;
  }

  /** Fails if a response is wrong. Returns one response of each method. */
  async check(actions: readonly Action[]): Promise<Record<string, RecordedResponse>> {
    const responses: Record<string, RecordedResponse> = {};
    for (const [index, { port }] of this.#instances.entries()) {
      for (const action of new Set(actions)) {
        const place = this.#nextRow() + index;
        this.#place = place + 1;
        responses[action.method] = await checkResponse(`127.0.0.1:${port}`, action, {
          number: String(firstNumber + place),
          // The first of the same garden.
          anywhere: String(firstNumber + (place % this.#size.gardens)),
          token: this.data.tokens[place % this.data.tokens.length] ?? "",
          key: Bun.randomUUIDv7(),
        });
      }
    }
    return responses;
  }

  async drive(actions: readonly Action[], connections: number, seconds: number): Promise<Round> {
    const threads = Math.min(2, connections);
    const ports = this.#instances.map(({ port }) => String(port));
    const host = `127.0.0.1:${ports[0]}`;
    const plan = {
      ports,
      tokens: this.data.tokens,
      requests: actions.map((action) => toPieces(action, host)),
      plants: this.#size.plants,
      first: firstNumber,
      offset: this.#nextRow(),
      stride,
      threads,
    };
    const planPath = join(this.#directory, "plan.lua");
    writeFileSync(planPath, `return ${toLua(plan)}`);
    const load = [`--threads=${threads}`, `--connections=${connections}`, `--duration=${seconds}s`];
    const script = `--script=${join(import.meta.dir, "load.lua")}`;
    const cpuBefore = this.#readCpuSeconds();
    const othersBefore = readOthersCpuSeconds();
    const startedAtMs = performance.now();
    const output = await run({
      words: ["wrk", ...load, "--timeout=30s", script, `http://${host}`],
      environment: { BENCH_PLAN: planPath },
    });
    const elapsedSeconds = (performance.now() - startedAtMs) / 1000;
    const others = readOthersCpuSeconds() - othersBefore;
    const cpuSeconds = this.#readCpuSeconds() - cpuBefore;
    const figures = JSON.parse(/^FIGURES (.*)$/m.exec(output)?.[1] ?? "null");
    this.#place = figures.used;
    return {
      responsesPerSecond: figures.responses / figures.seconds,
      p99Ms: figures.p99Ms,
      failures: figures.failures,
      cpuUsPerResponse: (cpuSeconds * 1e6) / figures.responses,
      othersCpuShare: Math.max(0, others / elapsedSeconds),
    };
  }

  #readCpuSeconds(): number {
    return this.#instances.reduce((sum, { subprocess }) => sum + readCpuSeconds(subprocess.pid), 0);
  }

  async wake(): Promise<void> {
    for (const { subprocess } of this.#instances) subprocess.kill("SIGCONT");
    await Bun.sleep(settleMs);
  }

  /**
   * Lets the contender finish what wrk left behind when it closed its connections, then freezes it.
   * Otherwise a slow one would spend its next round on the rest of the last. An instance that is
   * frozen within a transaction would hold its gardens against the others.
   */
  async rest(): Promise<void> {
    const startedAtMs = performance.now();
    const { isInTransaction = async () => false } = this.data;
    while (performance.now() - startedAtMs < calmDeadlineMs) {
      for (let calm = 0; calm < calmResponses; ) calm = (await this.#isCalm()) ? calm + 1 : 0;
      for (const { subprocess } of this.#instances) subprocess.kill("SIGSTOP");
      if (!(await isInTransaction())) return;
      for (const { subprocess } of this.#instances) subprocess.kill("SIGCONT");
    }
    throw new Error(`${this.contender.name} doesn't come to rest.`);
  }

  async #isCalm(): Promise<boolean> {
    for (const { subprocess, port } of this.#instances) {
      if ((await waitUntilReady(subprocess, port)) >= calmMs) return false;
    }
    return !(await this.data.isInTransaction?.());
  }

  /**
   * The next place of the first garden. Garden by garden, places belong to the instances in turn, so
   * a garden always meets the same one.
   */
  #nextRow(): number {
    const { gardens } = this.#size;
    return Math.ceil(this.#place / gardens) * gardens;
  }

  /** Nothing has to end cleanly, because nothing that was stored is needed. */
  async stop(): Promise<void> {
    for (const { subprocess } of this.#instances) {
      subprocess.kill("SIGKILL");
      await subprocess.exited;
    }
    this.#instances = [];
  }

  async remove(): Promise<void> {
    await this.stop();
    await this.data.drop?.();
    rmSync(this.#directory, { recursive: true });
  }
}

/** JSON's texts are Lua's, too, as long as they are ASCII. */
function toLua(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(toLua)}}`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, member]) => `${name}=${toLua(member)}`)}}`;
}
