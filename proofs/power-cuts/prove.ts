/**
 * `npm run prove power-cuts [images] [seed]`: records every file operation and every confirmed
 * write of the real program under load, cuts the power at moments of the recording, and examines
 * what is left.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { changeProgram, type Edit } from "../../test/changed-program.ts";
import { makeDice, spread } from "../../test/dice.ts";
import { runProgram, startService, waitFor } from "../../test/end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { type Call, InterposedIo, parseCalls } from "../interposed-io/interposed-io.ts";
import { type Entry, isSettled, Ledger } from "../ledger.ts";
import { joinTrials, prove, type Trial } from "../proof.ts";
import { Workload } from "../workload.ts";
import { Disk, writeImage } from "./disk.ts";
import { databasePath, examine } from "./examination.ts";

/** Stands among the recorded calls. */
type Note =
  | { readonly kind: "token"; readonly garden: string; readonly token: string }
  | { readonly kind: "entries"; readonly garden: string; readonly entries: readonly Entry[] }
  | { readonly kind: "power cut"; readonly seed: number };

interface RecordingOptions {
  readonly seed: number;
  /** How many writes are confirmed before a process is stopped. */
  readonly writes: number;
  readonly edits: readonly Edit[];
}

const clients = 10;
/** Of a bulk: several commits, and a recording stays small. */
const bulkPlantsMax = 300;
const fullSync = 'database.run("PRAGMA synchronous = FULL");';

/** A build that checkpoints after a few pages instead of a thousand. */
export function checkpointOften(pages: number): Edit {
  return {
    file: "storage/sqlite/open.ts",
    text: fullSync,
    by: `${fullSync} database.run("PRAGMA wal_autocheckpoint = ${pages}");`,
  };
}

/**
 * The first start, stops, restarts, commands beside it, and a start after a power cut. Returns the
 * log of all calls, with notes among them.
 */
async function record({ seed, writes, edits }: RecordingOptions): Promise<Buffer> {
  using folder = makeTemporaryFolder();
  const root = realpathSync(folder.path);
  const database = join(root, databasePath);
  using changed = changeProgram(edits);
  using io = new InterposedIo(root);
  const tokens = new Map<string, string>();

  function keepToken(garden: string, token: string): void {
    tokens.set(garden, token);
    io.note({ kind: "token", garden, token } satisfies Note);
  }

  async function makeToken(garden: string): Promise<void> {
    const variables = { ...io.variables, PLANTSTORE_DATABASE: database };
    keepToken(garden, (await runProgram(["token", "create", garden], variables)).out.trim());
  }

  /** Clients in every garden, whose ledgers are recorded, until the process gets the signal. */
  async function serve(number: number, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const { program } = changed;
    await using service = await startService({ database, program, variables: io.variables });
    if (service.token !== "") keepToken("gardener", service.token);
    let confirmed = 0;
    const workloads = [...tokens].map(([garden, token], index) => {
      const ledger = new Ledger((entries) => {
        io.note({ kind: "entries", garden, entries } satisfies Note);
        if (entries.every(isSettled)) confirmed++;
      });
      const options = { clients, bulkPlantsMax, seed: (seed * 3 + number) * 3 + index };
      return new Workload([{ ...service, token }], ledger, options);
    });
    if (number === 0) await makeToken("greenhouse");
    await waitFor(() => confirmed >= writes || undefined);
    service.signal(signal);
    await service.exited;
    await Promise.all(workloads.map((workload) => workload.stop()));
  }

  await serve(0, "SIGTERM");
  // When nothing serves the file, a command is the last to close it, and checkpoints.
  await makeToken("balcony");
  await serve(1, "SIGKILL");
  const disk = new Disk();
  for (const call of parseCalls(io.log())) disk.follow(call);
  io.note({ kind: "power cut", seed } satisfies Note);
  rmSync(join(root, "data"), { recursive: true });
  writeImage(disk.cut(makeDice(spread(seed))), root);
  await serve(2, "SIGTERM");
  return io.log();
}

/** Cuts of one recording, which only go forward. */
class PowerCuts {
  readonly #calls: readonly Call[];
  #disk = new Disk();
  readonly #gardens = new Map<string, { token: string; entries: Entry[] }>();
  #moment = 0;

  /** `count`: how many cuts there are in all. */
  constructor(
    log: Buffer,
    private readonly count: number,
  ) {
    this.#calls = parseCalls(log);
  }

  async examine(index: number, seed: number): Promise<Trial> {
    const dice = makeDice(spread(seed));
    const [from, to] = [this.#momentOf(index), this.#momentOf(index + 1)];
    const any = from + dice(to - from);
    // Half of them come right after a confirmed write.
    const confirmed = any + this.#calls.slice(any, to).findIndex(isConfirmation) + 1;
    this.#goTo(dice(2) === 0 ? any : confirmed);
    const gardens = [...this.#gardens.values()];
    const faults = await examine(this.#disk.cut(dice), gardens, dice);
    const promises = gardens.flatMap(({ entries }) => entries).filter(isSettled).length;
    return {
      faults: faults.map((fault) => `cut at call ${this.#moment}: ${fault}`),
      figures: { "confirmed writes checked": promises },
    };
  }

  /** The first calls create the store, so there are more cuts among them. */
  #momentOf(index: number): number {
    return Math.floor(this.#calls.length * (index / this.count) ** 2);
  }

  #goTo(moment: number): void {
    for (const call of this.#calls.slice(this.#moment, moment)) {
      const note = readNote(call);
      if (note === undefined) this.#disk.follow(call);
      else if (note.kind === "token") {
        this.#gardens.set(note.garden, { token: note.token, entries: [] });
      } else if (note.kind === "entries") {
        this.#gardens.get(note.garden)?.entries.push(...note.entries);
      } else this.#disk = new Disk(this.#disk.cut(makeDice(spread(note.seed))));
    }
    this.#moment = moment;
  }
}

/** Cuts of a new recording, until one finds a fault. */
export async function cutRecording(options: RecordingOptions, count: number): Promise<Trial> {
  const cuts = new PowerCuts(await record(options), count);
  const trials: Trial[] = [];
  while (trials.length < count && !trials.at(-1)?.faults.length) {
    trials.push(await cuts.examine(trials.length, options.seed + trials.length));
  }
  return joinTrials(trials);
}

function isConfirmation(call: Call): boolean {
  const note = readNote(call);
  return note?.kind === "entries" && note.entries.every(isSettled);
}

function readNote(call: Call): Note | undefined {
  return call.kind === "note" ? JSON.parse(call.data.toString()) : undefined;
}

if (import.meta.main) {
  /** Of one recording. */
  const imagesCount = 250;
  const output = join(import.meta.dir, "../../test/.output/power-cuts");
  let current: { number: number; log: Buffer; cuts: PowerCuts } | undefined;

  /** Checkpoints after a few pages, some, or as usual, which takes a while. */
  const recordAnew = (number: number) => {
    const dice = makeDice(spread(number));
    const pages = [4, 20, 100, undefined][dice(4)];
    const writes = pages === undefined ? 1_500 : 200 + dice(500);
    const edits = pages === undefined ? [] : [checkpointOften(pages)];
    return record({ seed: number, writes, edits });
  };

  await prove({
    trials: "images",
    count: 10_000,
    async run(seed) {
      const number = Math.floor(seed / imagesCount);
      // No two recordings are alike, so one with a fault is kept, and used again the next time.
      const kept = join(output, `recording-${number}`);
      if (current?.number !== number) {
        const log = existsSync(kept) ? readFileSync(kept) : await recordAnew(number);
        current = { number, log, cuts: new PowerCuts(log, imagesCount) };
      }
      const trial = await current.cuts.examine(seed % imagesCount, seed);
      if (trial.faults.length > 0) {
        mkdirSync(output, { recursive: true });
        writeFileSync(kept, current.log);
      }
      return trial;
    },
  });
}
