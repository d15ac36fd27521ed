/** One contender that was started for a measurement: checked, driven, paused and stopped here. */
import { readFileSync } from "node:fs";
import { type Contender, firstPlantNumber } from "../contenders/contender.ts";
import { type Action, fillSlot, type Share } from "../load/action.ts";
import { checkAnswer, type RecordedAnswer } from "../load/answer-check.ts";
import { driveLoad, type Figures, type Load } from "../load/wrk.ts";
import { type Child, startChild } from "../process/children.ts";
import { findFreePort, loopback } from "../process/free-port.ts";
import { waitUntilReady } from "../process/readiness.ts";
import { readMachineCpuSeconds, readUsage, watchResidentMemory } from "../process/usage.ts";

export interface Round extends Figures {
  /** Of one core, by the contender and its children. */
  readonly cpuShare: number;
  readonly cpuMicrosecondsPerAnswer: number;
  readonly residentMegabytes: number;
  /** Of one core, by anything that has no part in the measurement: it disturbs. */
  readonly othersCpuShare: number;
}

export type SeatLoad = Omit<Load, "host" | "shares">;

/** What must be known of who is measured; the name is for messages. */
type Starter = Pick<Contender, "readyPath" | "describeStart"> & { readonly name: string };

/** After it was woken, a service does what its timers missed; that is not measured. */
const settleMs = 150;
/** It is at rest once it answered this often in a row, each time within this long. */
const calmAnswers = 3;
const calmMs = 100;
const drainDeadlineMs = 60_000;

export class Seat<Who extends Starter = Contender> {
  readonly contender: Who;
  readonly directory: string;
  readonly child: Child;
  readonly host: string;
  /** Numbers below were already sent, so that no plant is made or deleted twice. */
  #nextNumber = firstPlantNumber;

  private constructor(contender: Who, directory: string, child: Child, host: string) {
    this.contender = contender;
    this.directory = directory;
    this.child = child;
    this.host = host;
  }

  static async start<Who extends Starter>(
    contender: Who,
    directory: string,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Seat<Who>> {
    const port = findFreePort();
    const host = `${loopback}:${port}`;
    const wish = contender.describeStart(directory, port);
    const logPath = `${directory}/standard-error.log`;
    const child = startChild({
      ...wish,
      environment: { ...wish.environment, ...environment },
      logPath,
    });
    try {
      await waitUntilReady(child, host, contender.readyPath);
    } catch (error) {
      const said = await Bun.file(logPath).text();
      throw new Error(`${contender.name}: ${(error as Error).message} ${said.slice(0, 1000)}`);
    }
    return new Seat(contender, directory, child, host);
  }

  /** Fails if any answer is not right; hands back what was answered, by method. */
  async check(shares: readonly Share[]): Promise<Record<string, RecordedAnswer>> {
    const answers: Record<string, RecordedAnswer> = {};
    for (const { action } of shares) {
      answers[action.method] = await checkAnswer(this.host, fillSlot(action, this.#sample(action)));
    }
    return answers;
  }

  async drive(shares: readonly Share[], load: SeatLoad): Promise<Round> {
    const before = readUsage(this.child.pid);
    const machineBefore = readMachineCpuSeconds();
    const ownBefore = process.cpuUsage();
    const startedAtMs = performance.now();
    const endWatch = watchResidentMemory(this.child.pid);
    const ready = shares.map((share) => ({ ...share, action: this.#advance(share.action) }));
    const figures = await driveLoad({ ...load, host: this.host, shares: ready }, this.directory);
    const seconds = (performance.now() - startedAtMs) / 1000;
    const residentMegabytes = endWatch();
    const cpuSeconds = readUsage(this.child.pid).cpuSeconds - before.cpuSeconds;
    const machineCpuSeconds = readMachineCpuSeconds() - machineBefore;
    const own = process.cpuUsage(ownBefore);
    const knownSeconds = cpuSeconds + figures.loadCpuSeconds + (own.user + own.system) / 1e6;
    // Numbers that come again and again are not used up.
    const isUsingUp = shares.some(({ action: { slot } }) => slot?.kind === "number" && !slot.wraps);
    if (isUsingUp) this.#nextNumber = Math.max(this.#nextNumber, figures.usedMost + 1);
    return {
      ...figures,
      cpuShare: cpuSeconds / seconds,
      cpuMicrosecondsPerAnswer: (cpuSeconds * 1e6) / Math.max(1, figures.answers),
      residentMegabytes,
      othersCpuShare: Math.max(0, machineCpuSeconds - knownSeconds) / seconds,
    };
  }

  async wake(): Promise<void> {
    this.child.resume();
    await Bun.sleep(settleMs);
  }

  /**
   * Lets the contender finish what wrk left behind when it closed its connections, then freezes it.
   * Otherwise a slow one would spend its next round on the leftovers of the last.
   */
  async rest(): Promise<void> {
    const startedAtMs = performance.now();
    for (let calm = 0; calm < calmAnswers; ) {
      if (performance.now() - startedAtMs > drainDeadlineMs) {
        throw new Error(`${this.contender.name} did not come to rest after a round.`);
      }
      const elapsedMs = await waitUntilReady(this.child, this.host, this.contender.readyPath);
      calm = elapsedMs < calmMs ? calm + 1 : 0;
    }
    this.child.pause();
  }

  /** What the slot of a single request is filled with. */
  #sample({ slot }: Action): string {
    if (slot?.kind === "line") return readFileSync(slot.path, "utf8").split("\n")[0] ?? "";
    if (slot?.wraps) return String(slot.first);
    return String(slot ? this.#nextNumber++ : 0);
  }

  /** The numbers of a slot that are used once go on where the last run ended. */
  #advance(action: Action): Action {
    const { slot } = action;
    if (slot?.kind !== "number" || slot.wraps) return action;
    const skipped = this.#nextNumber - slot.first;
    return { ...action, slot: { ...slot, first: this.#nextNumber, span: slot.span - skipped } };
  }
}
