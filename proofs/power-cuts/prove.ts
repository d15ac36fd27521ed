/**
 * `npm run prove power-cuts [recordings] [seed]`: records every file operation and every confirmed
 * write of the real program under load, cuts the power at moments of the recording, and examines
 * what is left.
 */
import { realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { changeProgram } from "../../testing/changed-program.ts";
import { makeDice, spread } from "../../testing/dice.ts";
import { runProgram, startService, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { type Call, InterposedIo } from "../interposed-io/interposed-io.ts";
import { type Entry, isSettled, Ledger } from "../ledger.ts";
import { prove, type Trial } from "../proof.ts";
import { Workload } from "../workload.ts";
import { Disk, writeImage } from "./disk.ts";
import { databasePath, examine, type Garden } from "./examination.ts";

/** Stands among the recorded calls. */
type Note =
  | { readonly garden: string; readonly token: string }
  | { readonly garden: string; readonly entries: readonly Entry[] }
  | "power cut";

interface RecordingOptions {
  readonly seed: number;
  /** How many writes are confirmed before a process is stopped. */
  readonly writes: number;
  readonly program?: string | undefined;
}

const clients = 10;
/** Of a bulk: several commits, and a recording stays small. */
const bulkPlantsMax = 300;
const fullSync = 'database.run("PRAGMA synchronous = FULL");';

/** A build that checkpoints after a few pages instead of a thousand. */
export function checkpointOften(pages: number) {
  const by = `${fullSync} database.run("PRAGMA wal_autocheckpoint = ${pages}");`;
  return changeProgram(["storage/sqlite/open.ts", fullSync, by]);
}

/**
 * The first start, stops, restarts, commands beside it, and a start after a power cut. Returns the
 * calls, with notes among them.
 */
async function record({ seed, writes, program }: RecordingOptions): Promise<Call[]> {
  using folder = makeTemporaryFolder();
  const root = realpathSync(folder.path);
  const database = join(root, databasePath);
  using io = new InterposedIo(root);
  const tokens = new Map<string, string>();

  function keepToken(garden: string, token: string): void {
    tokens.set(garden, token);
    io.note({ garden, token } satisfies Note);
  }

  async function makeToken(garden: string): Promise<void> {
    const variables = { ...io.variables, PLANTSTORE_DATABASE: database };
    keepToken(garden, (await runProgram(["token", "create", garden], variables)).out.trim());
  }

  /** Clients in every garden, whose ledgers are recorded, until the process gets the signal. */
  async function serve(number: number, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    await using service = await startService({ database, program, variables: io.variables });
    if (service.token !== "") keepToken("gardener", service.token);
    let confirmed = 0;
    const workloads = [...tokens].map(([garden, token], index) => {
      const ledger = new Ledger((entries) => {
        io.note({ garden, entries } satisfies Note);
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
  for (const call of io.calls()) disk.follow(call);
  io.note("power cut" satisfies Note);
  rmSync(join(root, "data"), { recursive: true });
  writeImage(disk.cut(makeDice(spread(seed))), root);
  await serve(2, "SIGTERM");
  return io.calls();
}

/** Cuts of a new recording, which only go forward, until one finds a fault. */
export async function cutRecording(options: RecordingOptions, count: number): Promise<Trial> {
  const calls = await record(options);
  let disk = new Disk();
  const gardens = new Map<string, Garden & { entries: Entry[] }>();
  let moment = 0;
  const goTo = (end: number) => {
    for (; moment < end; moment++) {
      const call = calls[moment] as Call;
      const note = readNote(call);
      if (note === undefined) disk.follow(call);
      else if (note === "power cut") disk = new Disk(disk.cut(makeDice(spread(options.seed))));
      else if ("token" in note) gardens.set(note.garden, { ...note, entries: [] });
      else gardens.get(note.garden)?.entries.push(...note.entries);
    }
  };
  /** The first calls create the store, so there are more cuts among them. */
  const momentOf = (index: number) => Math.floor(calls.length * (index / count) ** 2);
  const faults: string[] = [];
  const figures = { disks: 0, "confirmed writes checked": 0 };
  while (figures.disks < count && faults.length === 0) {
    const dice = makeDice(spread(options.seed + figures.disks));
    const [from, to] = [momentOf(figures.disks), momentOf(++figures.disks)];
    const any = from + dice(to - from);
    // Half of them come right after a confirmed write.
    const confirmed = any + calls.slice(any, to).findIndex(isConfirmation) + 1;
    goTo(dice(2) === 0 ? any : confirmed);
    const found = await examine(disk.cut(dice), [...gardens.values()], dice);
    faults.push(...found.map((fault) => `cut at call ${moment}: ${fault}`));
    const entries = gardens.values().flatMap((garden) => garden.entries);
    figures["confirmed writes checked"] += entries.filter(isSettled).toArray().length;
  }
  return { faults, figures };
}

function isConfirmation(call: Call): boolean {
  const note = readNote(call);
  return typeof note === "object" && "entries" in note && note.entries.every(isSettled);
}

function readNote(call: Call): Note | undefined {
  return call.kind === "note" ? JSON.parse(call.data.toString()) : undefined;
}

if (import.meta.main) {
  await prove({
    trials: "recordings with 250 cuts each",
    count: 40,
    async run(seed) {
      const dice = makeDice(spread(seed));
      // Checkpoints after a few pages, some, or as usual, which takes a while.
      const pages = [4, 20, 100, undefined][dice(4)];
      if (pages === undefined) return cutRecording({ seed, writes: 1_500 }, 250);
      using changed = checkpointOften(pages);
      return await cutRecording({ seed, writes: 200 + dice(500), program: changed.program }, 250);
    },
  });
}
