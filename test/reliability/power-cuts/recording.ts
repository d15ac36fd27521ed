/**
 * Records every file operation and every confirmed write of the real program under load: its first
 * start, stops, restarts and commands beside it.
 */
import { join } from "node:path";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { type RunningService, runProgram, startService } from "../../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { InterposedIo } from "../interposed-io/interposed-io.ts";
import { type Entry, isSettled, Ledger } from "../ledger.ts";
import { Workload } from "../workload.ts";
import { type Image, startFrom } from "./image.ts";

/** Stands among the recorded calls. */
export type Note =
  | { readonly kind: "place"; readonly root: string; readonly database: string }
  | { readonly kind: "token"; readonly garden: string; readonly token: string }
  | { readonly kind: "entries"; readonly garden: string; readonly entries: readonly Entry[] };

/** What a power cut has left of an earlier recording. */
export interface Leftover {
  readonly image: Image;
  readonly notes: readonly Note[];
}

export interface RecordingOptions {
  readonly seed: number;
  /** How many writes are confirmed before a process is stopped. */
  readonly writes: number;
  /** One start, or also stops, restarts and commands. */
  readonly extent: "brief" | "whole";
  readonly edits: readonly Edit[];
  /** What it starts from. */
  readonly leftover?: Leftover;
}

const clientsCount = 10;
/** Of a bulk: several commits, and a recording stays small. */
const linesMax = 300;
const pollMs = 5;
/** On a slow machine, fewer writes must do. */
const loadMsMax = 30_000;
/** The first start prints a token for the first one. */
const gardens = ["gardener", "greenhouse", "balcony"] as const;
const fullSync = 'database.run("PRAGMA synchronous = FULL");';

/** A build that checkpoints after a few pages instead of a thousand. */
export function checkpointOften(pages: number): Edit {
  return {
    file: "storage/sqlite/open.ts",
    text: fullSync,
    by: `${fullSync} database.run("PRAGMA wal_autocheckpoint = ${pages}");`,
  };
}

/** Returns the log of all calls, with notes among them. */
export async function record(options: RecordingOptions): Promise<Buffer> {
  const { seed, writes, extent, edits, leftover } = options;
  using folder = makeTemporaryFolder();
  using changed = edits.length > 0 ? changeProgram(edits) : undefined;
  using io = new InterposedIo(folder.path);
  const root = io.variables.INTERPOSED_FOLDER as string;
  // In folders that the program has to make.
  const database = join(root, "data/here/plants.db");
  const takeNote = (note: Note) => io.note(JSON.stringify(note));
  const tokens = new Map<string, string>();
  const keepToken = (garden: string, token: string) => {
    tokens.set(garden, token);
    takeNote({ kind: "token", garden, token });
  };
  const makeToken = async (garden: string) => {
    const variables = { ...io.variables, PLANTSTORE_DATABASE: database };
    const { out } = await runProgram(["token", "create", garden], variables);
    keepToken(garden, out.trim());
  };
  const start = () =>
    startService({ database, program: changed?.program, variables: io.variables });

  if (leftover) startFrom(leftover.image, root, io);
  for (const note of leftover?.notes ?? []) {
    takeNote(note);
    if (note.kind === "token") tokens.set(note.garden, note.token);
  }
  takeNote({ kind: "place", root, database });
  const [first, second, third] = gardens;
  {
    await using service = await start();
    if (service.token !== "") keepToken(first, service.token);
    await using load = new Load(service, tokens, seed, takeNote);
    if (extent === "whole") await makeToken(second);
    await load.reach(writes);
    if (extent === "brief") return io.log();
    await stop(service);
  }
  // When nothing serves the file, a command is the last to close it, and checkpoints.
  await makeToken(third);
  for (const laterSeed of [seed + 1, seed + 2]) {
    await using service = await start();
    await using load = new Load(service, tokens, laterSeed, takeNote);
    await load.reach(writes);
    await stop(service);
  }
  return io.log();
}

async function stop(service: RunningService): Promise<void> {
  service.signal("SIGTERM");
  await service.exited;
}

/** Clients in every garden, whose ledgers are recorded. */
class Load {
  readonly #workloads: readonly Workload[];
  #confirmed = 0;

  constructor(
    service: RunningService,
    tokens: ReadonlyMap<string, string>,
    seed: number,
    takeNote: (note: Note) => void,
  ) {
    this.#workloads = [...tokens].map(([garden, token], index) => {
      const ledger = new Ledger((entries) => {
        takeNote({ kind: "entries", garden, entries });
        if (entries.every(isSettled)) this.#confirmed++;
      });
      const ownSeed = seed * gardens.length + index;
      const options = { clients: clientsCount, seed: ownSeed, linesMax };
      return new Workload([{ ...service, token }], ledger, options);
    });
  }

  async reach(writes: number): Promise<void> {
    const endMs = performance.now() + loadMsMax;
    while (this.#confirmed < writes && performance.now() < endMs) await Bun.sleep(pollMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workloads.map((workload) => workload.stop()));
  }
}
