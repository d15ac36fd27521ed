/** A contender that was started for a measurement: checked, driven, frozen and stopped here. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Contender,
  type Data,
  firstNumber,
  lastNumber,
  type Size,
} from "../contenders/contender.ts";
import { checkResponse, type Mark, type RecordedResponse, type Share } from "../load/action.ts";
import { driveLoad, type Figures } from "../load/wrk.ts";
import { type Child, startChild } from "../process/children.ts";
import { findFreePort, loopback, waitUntilReady } from "../process/listening.ts";
import { readMachineCpuSeconds, readUsage, watchResidentMemory } from "../process/usage.ts";

/** What one round gave. Latencies are those of the slower instance. */
export interface Round extends Figures {
  /** Per response, by the instances and their database. */
  readonly cpuMicroseconds: number;
  readonly residentMegabytes: number;
  /** Of one core, by processes that have no part in this. */
  readonly othersCpuShare: number;
}

interface Instance {
  readonly child: Child;
  readonly host: string;
}

/** After it was woken, a service catches up on its timers; that isn't measured. */
const settleMs = 150;
/** It is at rest once it responds quickly so often in a row. */
const calmResponses = 3;
const calmMs = 100;
const drainDeadlineMs = 60_000;

export class Seat {
  readonly contender: Contender;
  readonly data: Data;
  readonly instances: readonly Instance[];
  readonly #size: Size;
  readonly #tokensPath: string;
  /** The place in the sequence of requests: earlier numbers were already sent. */
  #place = 0;

  private constructor(contender: Contender, data: Data, size: Size, instances: Instance[]) {
    this.contender = contender;
    this.data = data;
    this.instances = instances;
    this.#size = size;
    this.#tokensPath = join(data.directory, "tokens.txt");
    writeFileSync(this.#tokensPath, `${data.tokens.join("\n")}\n`);
  }

  static async start(contender: Contender, data: Data, size: Size): Promise<Seat> {
    const instances: Instance[] = [];
    for (let index = 0; index < contender.instances; index++) {
      const port = findFreePort();
      const logPath = join(data.directory, `standard-error-${index}.log`);
      const child = startChild({ ...contender.describeStart(data, port), logPath });
      const host = `${loopback}:${port}`;
      instances.push({ child, host });
      try {
        await waitUntilReady(child, host, contender.readyPath);
      } catch (error) {
        const said = await Bun.file(logPath).text();
        throw new Error(`${contender.name}: ${(error as Error).message} ${said.slice(0, 1000)}`);
      }
    }
    return new Seat(contender, data, size, instances);
  }

  /** Fails if a response is wrong; returns the responses by method. */
  async check(shares: readonly Share[]): Promise<Record<string, RecordedResponse>> {
    const responses: Record<string, RecordedResponse> = {};
    for (const { host } of this.instances) {
      for (const { action } of shares) {
        responses[action.method] = await checkResponse(host, action, this.#fill(this.#place));
        this.#place += 1;
      }
    }
    return responses;
  }

  /** The instances share the connections, and are driven at the same time. */
  async drive(
    shares: readonly Share[],
    connections: number,
    durationSeconds: number,
  ): Promise<Round> {
    const before = this.#cpuSeconds();
    const machineBefore = readMachineCpuSeconds();
    const ownBefore = process.cpuUsage();
    const startedAtMs = performance.now();
    const endWatches = this.instances.map(({ child }) => watchResidentMemory(child.pid));
    // Deletes run out of plants; nothing else runs out of numbers.
    const isDeleting = shares.some(
      ({ action }) => action.method === "DELETE" || action.path === "/plants/bulk-delete",
    );
    const { plants, perNumber = 1 } = this.#size;
    const parts = await Promise.all(
      this.instances.map(({ host }, index) =>
        driveLoad(
          {
            host,
            shares,
            durationSeconds,
            connections: Math.ceil(connections / this.instances.length),
            instances: this.instances.length,
            offset: this.#place + index,
            tokensPath: this.#tokensPath,
            first: firstNumber,
            plants,
            numbers:
              isDeleting && !this.contender.isEcho ? plants / perNumber : lastNumber - firstNumber,
            sample: this.#fill(0),
          },
          this.data.directory,
        ),
      ),
    );
    const seconds = (performance.now() - startedAtMs) / 1000;
    const residentMegabytes = endWatches.reduce((sum, end) => sum + end(), 0);
    const cpuSeconds = this.#cpuSeconds() - before;
    const machineCpuSeconds = readMachineCpuSeconds() - machineBefore;
    const own = process.cpuUsage(ownBefore);
    const figures = joinFigures(parts);
    this.#place = figures.used;
    const known = cpuSeconds + figures.loadCpuSeconds + (own.user + own.system) / 1e6;
    return {
      ...figures,
      cpuMicroseconds: (cpuSeconds * 1e6) / Math.max(1, figures.responses),
      residentMegabytes,
      othersCpuShare: Math.max(0, machineCpuSeconds - known) / seconds,
    };
  }

  async wake(): Promise<void> {
    for (const { child } of this.instances) child.resume();
    await Bun.sleep(settleMs);
  }

  /**
   * Lets the contender finish what wrk left behind when it closed its connections, then freezes it.
   * Otherwise a slow one would spend its next round on the rest of the last.
   */
  async rest(): Promise<void> {
    for (const { child, host } of this.instances) {
      const startedAtMs = performance.now();
      for (let calm = 0; calm < calmResponses; ) {
        if (performance.now() - startedAtMs > drainDeadlineMs) {
          throw new Error(`${this.contender.name} didn't come to rest after a round.`);
        }
        const elapsedMs = await waitUntilReady(child, host, this.contender.readyPath);
        calm = elapsedMs < calmMs ? calm + 1 : 0;
      }
      child.pause();
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.instances.map(({ child }) => child.stop()));
  }

  #cpuSeconds(): number {
    const pids = this.instances.map(({ child }) => child.pid);
    const database = this.contender.databasePid?.();
    if (database !== undefined) pids.push(database);
    return pids.reduce((sum, pid) => sum + readUsage(pid).cpuSeconds, 0);
  }

  /** What wrk would fill in at this place. */
  #fill(place: number): Record<Mark, string> {
    return {
      number: String(firstNumber + place),
      // The first of the same garden.
      anywhere: String(firstNumber + (place % this.#size.gardens)),
      token: this.data.tokens[place % this.data.tokens.length] ?? "",
      key7: Bun.randomUUIDv7(),
      key4: crypto.randomUUID(),
    };
  }
}

function joinFigures(parts: readonly Figures[]): Figures {
  const sum = (pick: (part: Figures) => number) => parts.map(pick).reduce((a, b) => a + b, 0);
  const most = (pick: (part: Figures) => number) => Math.max(...parts.map(pick));
  return {
    responses: sum((part) => part.responses),
    responsesPerSecond: sum((part) => part.responsesPerSecond),
    p50Ms: most((part) => part.p50Ms),
    p99Ms: most((part) => part.p99Ms),
    faults: sum((part) => part.faults),
    used: most((part) => part.used),
    loadCpuSeconds: sum((part) => part.loadCpuSeconds),
  };
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
