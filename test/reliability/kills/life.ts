/**
 * A database whose service is killed at any moment, or told to stop, and restarted, while clients
 * go on. After every start, all promises made so far are checked against the plants.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import type { RawResponse } from "../../../src/check/wire.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { makeDice, spread } from "../../dice.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { auditStore } from "../audited-store.ts";
import { headerOf } from "../kept-connection.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import type { Trial } from "../proof.ts";
import { RestartingService } from "../restarting-service.ts";
import { SteadyCaller } from "../steady-caller.ts";
import { Workload } from "../workload.ts";
import { type ClientTokens, InterruptedClients } from "./interrupted-clients.ts";

/**
 * `load`: at any moment. `first write`: right after a write was confirmed. `start`: before it
 * serves. `checkpoint`: while the WAL is copied into the file. `stopping`: right after SIGTERM.
 * `stop`: SIGTERM only.
 */
export const moments = ["load", "first write", "start", "checkpoint", "stopping", "stop"] as const;
export type Moment = (typeof moments)[number];

/** In the long run, half of the ends come at any moment. */
const mix: readonly Moment[] = [
  ...(["load", "load", "load", "load", "load"] as const),
  ...moments.slice(1),
];

export interface LifeOptions {
  readonly seed: number;
  /** How the process ends each time, or how many random ends there are. */
  readonly ends: number | readonly Moment[];
  readonly threads?: number;
  readonly isSecure?: boolean;
  readonly program?: string;
}

const certificates = join(import.meta.dir, "../../certificates");
const secureArgs = [
  ...["--tls-cert", join(certificates, "server.pem")],
  ...["--tls-key", join(certificates, "server-key.pem")],
];
const clientsCount = 12;
/** Enough to fill the WAL soon. */
const checkpointClientsCount = 48;
/** Of a bulk; the service takes no more. */
const linesMax = 10_000;
const loadMs = 250;
const startMs = 250;
const stoppingMs = 40;
const checkpointMs = 2_000;
/** How long docs/operating.md lets it drain, and some more for a busy machine. */
const stopMsMax = 13_000;
const checkedFileEvery = 8;
/** A list of so many of these is longer than the buffers of a connection. */
const longListPlants = 40_000;
const longPlant = { name: "Fern".repeat(50), tag: "long" };
/** In brackets, with commas between. */
const longListBytes = longListPlants * (JSON.stringify(longPlant).length + 1) + 1;

export async function live(options: LifeOptions): Promise<Trial> {
  using folder = makeTemporaryFolder();
  const life = new Life(join(folder.path, "plants.db"), options);
  try {
    await life.prepare();
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
  readonly #caller: SteadyCaller;
  readonly #isSecure: boolean;
  readonly #figures: Record<string, number> = {};
  #onWrite = () => {};
  /** The highest id so far, and before this process started: a new id must be higher. */
  #highestId = 0n;
  #floorId = 0n;
  #tokens: ClientTokens = { token: "", readerToken: "", longListBytes };

  constructor(database: string, options: LifeOptions) {
    this.#database = database;
    this.#seed = options.seed;
    this.#dice = makeDice(spread(options.seed));
    const { ends } = options;
    const pick = () => mix[this.#dice(mix.length)] as Moment;
    this.#ends = typeof ends === "number" ? Array.from({ length: ends }, pick) : ends;
    const threads = options.threads ?? 1 + this.#dice(2);
    this.#isSecure = options.isSecure ?? this.#dice(5) === 0;
    const args = ["--threads", String(threads), ...(this.#isSecure ? secureArgs : [])];
    const service = new RestartingService({ database, args, program: options.program });
    this.#service = service;
    this.#caller = new SteadyCaller({
      pickPort: () => service.untilUp(),
      isSecure: this.#isSecure,
      onResponse: (response) => this.#check(response),
      // Only a killed process may leave half a response behind.
      onCutShort: async (port, text) => {
        if ((await service.exits.get(port)) === 0) this.#ledger.fault(text);
      },
    });
  }

  /** The very first start is killed, too. */
  async prepare(): Promise<void> {
    await this.#service.startAndKill(this.#dice(startMs));
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

  /** Ends with the first fault: later ones would only repeat it. */
  async run(): Promise<Trial> {
    let settle = async () => {};
    for (const [cycle, end] of this.#ends.entries()) {
      this.#count("cycles");
      if (end === "start") {
        await this.#service.startAndKill(this.#dice(startMs));
        this.#count("killed in the start");
        continue;
      }
      const faults = await this.#restart(settle, cycle % checkedFileEvery === 0);
      if (faults.length > 0) return this.#conclude(faults);
      settle = await this.#serveUntil(end, (this.#seed % 1_000) * 1_000 + cycle);
    }
    return this.#conclude(await this.#restart(settle, true));
  }

  /** Starts it, lets clients settle unknown outcomes, and checks all promises. */
  async #restart(settle: () => Promise<void>, isFileChecked: boolean): Promise<readonly string[]> {
    await this.#service.start();
    await settle();
    if (isFileChecked) await this.#checkFile();
    const plants = await listPlants(this.#caller, this.#tokens.token);
    const lastId = BigInt(plants.at(-1)?.id ?? 0);
    if (lastId > this.#highestId) this.#highestId = lastId;
    this.#floorId = this.#highestId;
    return this.#ledger.audit(plants);
  }

  #check(response: RawResponse): void {
    const { status, body } = response;
    // A busy service refuses with 503, and does nothing.
    if (status >= 500 && status !== 503) this.#ledger.fault(`${status}: ${body}`);
    const isBulk = headerOf(response, "content-type") === "application/jsonl";
    if (status === 201 || status === 204 || isBulk) this.#onWrite();
    const id = BigInt(headerOf(response, "location")?.split("/").at(-1) ?? 0);
    if (status !== 201 || id <= 0n) return;
    if (id <= this.#floorId && !headerOf(response, "idempotency-replayed")) {
      this.#ledger.fault(`the id ${id} was assigned after ${this.#floorId}`);
    }
    if (id > this.#highestId) this.#highestId = id;
  }

  /** Clients work until the end. Returns how they settle unknown outcomes after the next start. */
  async #serveUntil(end: Exclude<Moment, "start">, seed: number): Promise<() => Promise<void>> {
    const { call } = this.#caller;
    const instance = { token: this.#tokens.token, call };
    const clients = end === "checkpoint" ? checkpointClientsCount : clientsCount;
    const workload = new Workload([instance], this.#ledger, { clients, seed, linesMax });
    const written = new Promise<void>((resolve) => {
      this.#onWrite = resolve;
    });
    const address = { port: this.#service.port, isSecure: this.#isSecure, call };
    const interrupted =
      end === "stop" && new InterruptedClients(address, this.#tokens, this.#ledger, seed);
    if (end === "first write") await written;
    else if (end === "checkpoint") await this.#untilCheckpoint();
    else await Bun.sleep(this.#dice(loadMs));
    if (interrupted) await this.#stop(interrupted);
    else await this.#kill(end);
    const stopped = workload.stop();
    return async () => {
      await stopped;
      if (interrupted) await interrupted.settle();
      for (const [figure, value] of Object.entries(workload.figures)) this.#count(figure, value);
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

  async #stop(interrupted: InterruptedClients): Promise<void> {
    await interrupted.untilBegun();
    const startedAtMs = performance.now();
    const stopping = this.#service.stop();
    await interrupted.finish();
    await stopping.catch((error) => this.#ledger.fault(`${error}`));
    if (performance.now() - startedAtMs > stopMsMax) this.#ledger.fault("it took long to stop");
    this.#count("stopped");
    this.#count("responses during a stop", interrupted.answered);
  }

  /** Until pages of the WAL reach the file, or for a while. */
  async #untilCheckpoint(): Promise<void> {
    const writtenAtMs = () => statSync(this.#database).mtimeMs;
    const [before, deadlineMs] = [writtenAtMs(), performance.now() + checkpointMs];
    while (writtenAtMs() === before && performance.now() < deadlineMs) await Bun.sleep(1);
    if (writtenAtMs() !== before) this.#count("in a checkpoint");
  }

  async #checkFile(): Promise<void> {
    for (const fault of await auditStore(this.#database)) this.#ledger.fault(fault);
    this.#count("files checked");
  }

  async end(): Promise<void> {
    await this.#service.kill();
  }

  #conclude(faults: readonly string[]): Trial {
    const { answered, lost, lostBulks } = this.#caller;
    const figures = { ...this.#figures, "bulks cut off": lostBulks, answered, lost };
    return { faults, figures: { ...figures, ...this.#ledger.counts } };
  }

  #count(figure: string, more = 1): void {
    this.#figures[figure] = (this.#figures[figure] ?? 0) + more;
  }
}
