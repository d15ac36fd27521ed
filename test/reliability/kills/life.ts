/**
 * The life of a database whose service is killed at any moment, or told to stop, and started again,
 * while clients go on. After every start each answer that was ever given is held against the
 * plants.
 */
import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { makeDice, spread } from "../../dice.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { Gardeners } from "../gardeners.ts";
import { Ledger, type ListedPlant, readList } from "../ledger.ts";
import type { Trial } from "../proof.ts";
import { MidwayClients, type MidwayTokens } from "./midway-clients.ts";
import { RestartingService } from "./restarting-service.ts";

/**
 * `load`: at any moment. `first answer`: a write was answered just now. `start`: before it serves.
 * `checkpoint`: the log is being folded into the file. `stopping`: it was told to stop just now.
 * `stop`: it is told to stop, and not killed.
 */
export const moments = ["load", "first answer", "start", "checkpoint", "stopping", "stop"] as const;
export type Moment = (typeof moments)[number];

/** Of ten ends, in the long run. */
const mix: readonly Moment[] = [
  ...(["load", "load", "load", "load", "load"] as const),
  ...moments.slice(1),
];

export interface LifeOptions {
  readonly seed: number;
  /** The ends that it comes to, in order; by chance, if only their number is given. */
  readonly ends: number | readonly Moment[];
  readonly threads?: number;
  readonly isSecure?: boolean;
  readonly program?: string;
}

const gardenersCount = 12;
/** So many that the log fills soon. */
const busyGardenersCount = 48;
const loadMs = 250;
const startMs = 250;
const stoppingMs = 40;
const checkpointMs = 2_000;
/** What docs/operating.md gives it to drain, and then some for the machine. */
const stopMsMax = 13_000;
const checkedFileEvery = 8;
/** A list of so many of these is longer than the buffers on its way. */
const longListPlants = 40_000;
const longPlant = { name: "Fern".repeat(50), tag: "long" };
/** In brackets, with commas between. */
const longListBytes = longListPlants * (JSON.stringify(longPlant).length + 1) + 1;

export async function live(options: LifeOptions): Promise<Trial> {
  using folder = makeTemporaryFolder();
  const life = new Life(join(folder.path, "plants.db"), options);
  try {
    await life.prepare();
    // Waited for here, because the folder goes when this function ends.
    return await life.run();
  } finally {
    await life.end();
  }
}

class Life {
  readonly #database: string;
  readonly #seed: number;
  readonly #dice: (sides: number) => number;
  readonly #ends: readonly Moment[];
  readonly #ledger = new Ledger();
  readonly #service: RestartingService;
  readonly #figures: Record<string, number> = {};
  #tokens: MidwayTokens = { token: "", readerToken: "", longListBytes };

  constructor(database: string, options: LifeOptions) {
    this.#database = database;
    this.#seed = options.seed;
    this.#dice = makeDice(spread(options.seed));
    const chosen = () => mix[this.#dice(mix.length)] as Moment;
    this.#ends =
      typeof options.ends === "number"
        ? Array.from({ length: options.ends }, chosen)
        : options.ends;
    this.#service = new RestartingService({
      database,
      threads: options.threads ?? 1 + this.#dice(2),
      isSecure: options.isSecure ?? this.#dice(5) === 0,
      program: options.program,
      onFault: (text) => this.#ledger.fault(text),
    });
  }

  /** Its very first start is killed, too. */
  async prepare(): Promise<void> {
    await this.#service.startInVain(this.#dice(startMs));
    const storage = await openStorage(this.#database, { isServing: false });
    const token = await issueToken(storage, { user: "gardener" }, Date.now());
    const reader = await issueToken(storage, { user: "reader", scope: "read" }, Date.now());
    this.#tokens = { token: token.token, readerToken: reader.token, longListBytes };
    if (this.#ends.includes("stop")) {
      const given = { garden: "reader", id: undefined, idempotency: undefined };
      const write = { kind: "create", ...given, ...longPlant } as const;
      await storage.apply(Array.from({ length: longListPlants }, () => write));
    }
    await storage.close();
  }

  /** Ends with the first fault: what follows would only repeat it. */
  async run(): Promise<Trial> {
    let settle = async () => {};
    for (const [cycle, end] of this.#ends.entries()) {
      this.#count("cycles");
      if (end === "start") {
        await this.#service.startInVain(this.#dice(startMs));
        this.#count("killed in the start");
        continue;
      }
      const faults = await this.#awake(settle, cycle % checkedFileEvery === 0);
      if (faults.length > 0) return this.#conclude(faults);
      settle = await this.#spend(end, (this.#seed % 1_000) * 1_000 + cycle);
    }
    return this.#conclude(await this.#awake(settle, true));
  }

  /** Starts it, has clients settle what was left open, and holds it all against the plants. */
  async #awake(settle: () => Promise<void>, isFileChecked: boolean): Promise<readonly string[]> {
    await this.#service.start();
    await settle();
    if (isFileChecked) this.#checkFile();
    return this.#ledger.audit(await this.#list());
  }

  /** Clients work until the end comes. Hands back how they settle, after the next start. */
  async #spend(end: Exclude<Moment, "start">, seed: number): Promise<() => Promise<void>> {
    const service = this.#service;
    const instance = { service, token: this.#tokens.token };
    const count = end === "checkpoint" ? busyGardenersCount : gardenersCount;
    const gardeners = new Gardeners([instance], this.#ledger, count, seed);
    const answered = service.untilAnswer();
    const midway = end === "stop" && new MidwayClients(service, this.#tokens, this.#ledger, seed);
    if (end === "first answer") await answered;
    else if (end === "checkpoint") await this.#untilCheckpoint();
    else await Bun.sleep(this.#dice(loadMs));
    if (midway) await this.#stop(midway);
    else await this.#kill(end);
    const stopped = gardeners.stop();
    return async () => {
      await stopped;
      if (midway) await midway.settle();
    };
  }

  async #kill(end: Moment): Promise<void> {
    if (end === "stopping") {
      this.#service.beginStop();
      await Bun.sleep(this.#dice(stoppingMs));
    }
    await this.#service.kill();
    this.#count(`killed: ${end}`);
  }

  async #stop(midway: MidwayClients): Promise<void> {
    await midway.untilBegun();
    const startedAtMs = performance.now();
    const stopping = this.#service.stop();
    await midway.finish();
    const exitCode = await stopping;
    if (exitCode !== 0) this.#ledger.fault(`it stopped with exit code ${exitCode}`);
    if (performance.now() - startedAtMs > stopMsMax) this.#ledger.fault("it took long to stop");
    this.#count("stopped");
    this.#count("answers of midway clients", midway.answered);
  }

  /** Until pages of the log begin to reach the file, or for a while. */
  async #untilCheckpoint(): Promise<void> {
    const writtenAtMs = () => statSync(this.#database).mtimeMs;
    const [before, deadlineMs] = [writtenAtMs(), performance.now() + checkpointMs];
    while (writtenAtMs() === before && performance.now() < deadlineMs) await Bun.sleep(1);
    if (writtenAtMs() !== before) this.#count("in a checkpoint");
  }

  async #list(): Promise<ListedPlant[]> {
    const { token } = this.#tokens;
    const response = await this.#service.call("GET /plants?fields=id,name,tag", { token });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`The plants cannot be listed: ${text}`);
    const plants = readList(text);
    this.#service.raiseFloor(BigInt(plants.at(-1)?.id ?? 0));
    return plants;
  }

  #checkFile(): void {
    using file = new Database(this.#database, { readonly: true });
    const found = file.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
    if (found[0]?.integrity_check !== "ok") this.#ledger.fault(`corrupt: ${JSON.stringify(found)}`);
    this.#count("files checked");
  }

  async end(): Promise<void> {
    await this.#service.kill();
  }

  #conclude(faults: readonly string[]): Trial {
    const { there, gone, open } = this.#ledger.counts;
    const { answered, lost } = this.#service;
    return { faults, figures: { ...this.#figures, answered, lost, there, gone, open } };
  }

  #count(figure: string, more = 1): void {
    this.#figures[figure] = (this.#figures[figure] ?? 0) + more;
  }
}
